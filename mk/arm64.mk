# Builds for arm64 with Debian's cross compiler; the suites then run under qemu's CPU emulation, with fast kernels
# (NEON) and with plain ones. ARCH is the value of mk/choices.mk on arm64. Tests that start programs are excluded: qemu
# would run them on this host's CPU.
.PHONY: arm64 arm64-run
ARM64      := CXX='$(if $(findstring ccache,$(CXX)),ccache )aarch64-linux-gnu-g++' ARCH=armv8-a+crypto
ARM64_OWN  := libtbb-dev libfmt-dev zlib1g-dev libopenblas-dev libhwy-dev libboost-test-dev
ARM64_SKIP := analysis claims* cli_* confined data_fetch docs/every_command_has_its_row io_safetensors io_upstream_weights/very_many_tensors maps measurement_scripts memory memory_check plot_* scaling tables_script train_kill train_seam train_step
arm64:
	@dpkg --print-foreign-architectures | grep -qx arm64 || $$([ "$$(id -u)" = 0 ] || echo sudo) dpkg --add-architecture arm64
	+@$(MAKE) --no-print-directory deps PACKAGES='$(PACKAGES) g++-aarch64-linux-gnu qemu-user $(ARM64_OWN:%=%:arm64)'
	+@$(MAKE) --no-print-directory arm64-run $(ARM64) BUILD=build-arm64
	+@$(MAKE) --no-print-directory arm64-run $(ARM64) BUILD=build-arm64-reference KERNELS=reference

arm64-run:
	$(MAKE_ALL) all $(BUILD)/tests/run $(BUILD)/tests/core
	qemu-aarch64 $(BUILD)/tests/core
	qemu-aarch64 $(BUILD)/heed gradcheck softmax
	$(if $(findstring reference,$(BUILD)),,qemu-aarch64 $(BUILD)/heed selftest)
	qemu-aarch64 $(BUILD)/tests/run --report_level=short $(ARM64_SKIP:%=--run_test='!%')

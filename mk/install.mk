# `make install`: headers, library, program, and the program's data files.

prefix = $(abspath $(PREFIX))
target = $(DESTDIR)$(prefix)

install: all
	for header in $$(find include -name '*.h'); do install -D -m 644 $$header $(target)/$$header || exit; done
	install -D -m 644 -t $(target)/share/heed/models models/*.toml
	install -D -m 644 -t $(target)/share/heed/models/energy models/energy/*.toml
	install -D -m 644 -t $(target)/share/heed/experiments experiments/*.toml
	install -D -m 644 -t $(target)/share/heed/experiments/results experiments/results/*
	install -D -m 644 -t $(target)/share/heed/experiments/sweeps experiments/sweeps/*.toml
	install -D -m 644 -t $(target)/share/heed/experiments/tools experiments/tools/figures.py experiments/tools/common.sh
	install -D -t $(target)/share/heed/experiments/tools experiments/tools/plot_*.py $(addprefix experiments/tools/,paper-costs \
	  scaling tables time-errors transfer)
	install -D -t $(target)/share/heed/experiments/scripts experiments/scripts/*
	install -D -m 644 -t $(target)/share/heed/experiments/claims $(wildcard $(addprefix experiments/claims/*.,toml sh csv))
	install -D -m 644 -t $(target)/share/heed/experiments/claims/settings experiments/claims/settings/*.toml
	install -D -t $(target)/share/heed/experiments/claims $(filter-out %.toml %.sh %.csv %/settings %/page,$(wildcard \
	  experiments/claims/*))
	install -D -m 644 -t $(target)/share/heed/experiments/pictures experiments/pictures/sneaker.png
	install -D -m 644 -t $(target)/share/heed/notebooks notebooks/*.ipynb notebooks/*.py notebooks/for-students.md
	for file in $$(find notebooks/labs -type f); do install -D -m 644 $$file $(target)/share/heed/$$file || exit; done
	for file in docs/*.md docs/diagrams/*.svg src/attention/softmax.cpp; do install -D -m 644 $$file $(target)/share/heed/$$file || exit; done
	install -D -m 644 -t $(target)/share/heed/examples examples/*.cpp examples/*.h examples/*.py
	install -D -t $(target)/share/heed/datasets datasets/fetch.sh
	install -D -m 644 -t $(target)/share/heed/datasets datasets/checksums.md5
	install -D -m 644 -t $(target)/lib $(BUILD)/libheed.a
	install -D -t $(target)/bin $(BUILD)/heed
	mkdir -p $(target)/lib/pkgconfig $(target)/share/bash-completion/completions
	sh mk/manual.sh $(BUILD)/heed $(target)/share/man/man1
	$(BUILD)/heed completion bash >$(target)/share/bash-completion/completions/heed
	sed -e 's|@PREFIX@|$(prefix)|; s|@VERSION@|$(VERSION)|; s|@CFLAGS@|$(EXPORTED)|; s|@LIBS@|$(LIBS)|' heed.pc.in \
	  >$(target)/lib/pkgconfig/heed.pc

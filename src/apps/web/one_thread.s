# Address of the single thread's variables in the engine without threads. Without shared memory, Debian's linker (14)
# places them at fixed addresses, but still sets __tls_base, which the code adds, to the first of these: so every such
# variable would overlap something else. This defines it as 0.
	.globaltype	__tls_base, i32
	.globl	__tls_base
__tls_base:

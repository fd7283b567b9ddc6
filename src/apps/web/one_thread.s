# Base address of thread-local variables in the engine without threads. Without shared memory, Debian's linker (14)
# gives them fixed addresses, yet sets __tls_base, which the code adds to each address, to the first of them: every such
# variable would overlap something else. This defines the base as 0.
	.globaltype	__tls_base, i32
	.globl	__tls_base
__tls_base:

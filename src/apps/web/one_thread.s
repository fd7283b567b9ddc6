# Base address of thread-local variables in the engine without threads. Without shared memory, Debian's linker (version
# 14) gives these variables fixed addresses, but sets __tls_base to the first of the addresses. Compiled code adds
# __tls_base to each address, so every thread-local variable would overlap another object. This file defines the base as
# 0.
	.globaltype	__tls_base, i32
	.globl	__tls_base
__tls_base:

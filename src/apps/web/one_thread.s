# Where the variables of the only thread are, in the page's engine that has no others. Debian's linker (14) puts them at
# fixed places if memory is not shared, but still lets __tls_base, which the code adds, be the first of these places: so
# every such variable would lie where another thing is. Defined here it is 0.
	.globaltype	__tls_base, i32
	.globl	__tls_base
__tls_base:

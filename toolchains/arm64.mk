# 64-bit ARM.
TRIPLE := aarch64-linux-gnu
include toolchains/cross.mk

# 64-bit ARM. Its kernels have pages of 4, 16 or 64 KB, and map no program that is laid out for smaller ones.
TRIPLE := aarch64-linux-gnu
TARGET_CFLAGS := -Wl,-z,max-page-size=65536
include toolchains/cross.mk

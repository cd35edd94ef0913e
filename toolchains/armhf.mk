# 32-bit ARM with a floating-point unit, as Debian and Raspberry Pi OS call it.
TRIPLE := arm-linux-gnueabihf
include toolchains/cross.mk

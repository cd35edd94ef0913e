# 32-bit ARM with a floating-point unit, as Debian and Raspberry Pi OS call it. Time does not end in 2038; no library
# that tarn is linked with takes or gives one (mbed TLS keeps one in a struct that only it looks into).
TRIPLE := arm-linux-gnueabihf
TARGET_CFLAGS := -D_TIME_BITS=64
include toolchains/cross.mk

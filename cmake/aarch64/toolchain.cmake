# For AArch64 from another Debian machine, with its packages g++-aarch64-linux-gnu and qemu-user: the preset `arm`. Tests run under
# qemu. The dependencies are headers, which serve every architecture: what is installed for the building machine is used.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
file(GLOB xsimd_DIR /usr/lib/*-linux-gnu/cmake/xsimd)  # Debian keeps it among libraries
set(fmt_DIR ${CMAKE_CURRENT_LIST_DIR})

// Macros that real hosts on this platform define before they include a library. The headers that nihao itself includes come
// first, since they are not under test and some of them use these names.
// min and max are not here: the C++ standard library's own headers undefine or break on them, so no such host reaches ours.
#pragma once

#include <bits/stdc++.h>

#include <fcntl.h>
#include <immintrin.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xsimd/xsimd.hpp>

// <complex.h>, <sys/sysmacros.h>, <sys/user.h>, <linux/fs.h>, <termios.h>
#undef I
#define I poisoned by complex.h
#undef major
#undef minor
#define major(device) poisoned by sysmacros.h
#define minor(device) poisoned by sysmacros.h
#undef PAGE_SIZE
#undef BLOCK_SIZE
#define PAGE_SIZE poisoned by user.h
#define BLOCK_SIZE poisoned by fs.h
#define B0 poisoned by termios.h
#define ECHO poisoned by termios.h
// X11
#define None poisoned by X.h
#define Bool poisoned by Xlib.h
#define Status poisoned by Xlib.h
#define Success poisoned by X.h
#define Always poisoned by X.h
#define True poisoned by Xlib.h
#define False poisoned by Xlib.h
#define Unsorted poisoned by Xlib.h
// Qt
#define signals poisoned by Qt
#define slots poisoned by Qt
#define emit poisoned by Qt
#define foreach poisoned by Qt
#define forever poisoned by Qt
// Test and logging libraries
#define CHECK(...) poisoned by a logging library
#define REQUIRE(...) poisoned by a test library
#define ASSERT(...) poisoned by a test library
#define FAIL(...) poisoned by a test library
#define LOG(...) poisoned by a logging library
#define INFO(...) poisoned by a logging library
#define ERROR poisoned by a logging library
#define WARNING poisoned by a logging library
#define DEBUG poisoned by a build
#define TRACE poisoned by a build
#define VERSION poisoned by a build
// Numeric code
#define PI poisoned by numeric code
#define EPS poisoned by numeric code
#define TRUE poisoned by C
#define FALSE poisoned by C
#define IN poisoned by annotations
#define OUT poisoned by annotations
#define likely(x) poisoned by kernel style
#define unlikely(x) poisoned by kernel style
#define countof(x) poisoned by C

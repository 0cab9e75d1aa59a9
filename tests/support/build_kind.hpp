// What kind of build the tests are: some measure, and some would take minutes, where every access is checked.
#pragma once

namespace nihao::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

#if defined(__OPTIMIZE__)
inline constexpr bool quick_build = !sanitized;
#else
inline constexpr bool quick_build = false;
#endif

}  // namespace nihao::test

// What whoever renders a template says: how much it may use, and what time it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nihao::jinja {

/// What a render may use. Going over is Error{limit}; a template can neither hang nor fill the machine.
struct Limits {
  std::uint64_t steps = 50'000'000;  ///< nodes evaluated, and elements or bytes worked on inside filters
  /// Of statements, expressions and macro calls inside each other, and of nested values (1 MiB of stack).
  std::uint32_t depth = 400;
  std::size_t output_bytes = 64u << 20;   ///< of the text rendered
  std::size_t memory_bytes = 256u << 20;  ///< of the values and texts alive that the template has made
};

/// A moment as a wall shows it, without a time zone.
struct DateTime {
  std::int32_t year = 1970;
  std::int32_t month = 1;   ///< 1 to 12
  std::int32_t day = 1;     ///< 1 to 31
  std::int32_t hour = 0;    ///< 0 to 23
  std::int32_t minute = 0;  ///< 0 to 59
  std::int32_t second = 0;  ///< 0 to 60

  /// Seconds since 1970-01-01T00:00:00 (UTC, or local ones for a local date) to a date.
  /// Source: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
  [[nodiscard]] static constexpr DateTime from_unix(std::int64_t seconds) noexcept {
    std::int64_t days = seconds / 86400, rest = seconds % 86400;
    if (rest < 0) rest += 86400, --days;
    const std::int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, in_era = z - era * 146097;
    const std::int64_t year_of_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    const std::int64_t in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);  // from 1 March
    const std::int64_t m = (5 * in_year + 2) / 153, month = m < 10 ? m + 3 : m - 9;
    return {static_cast<std::int32_t>(year_of_era + era * 400 + (month <= 2)),
            static_cast<std::int32_t>(month),
            static_cast<std::int32_t>(in_year - (153 * m + 2) / 5 + 1),
            static_cast<std::int32_t>(rest / 3600),
            static_cast<std::int32_t>(rest / 60 % 60),
            static_cast<std::int32_t>(rest % 60)};
  }
  /// Whether it is a day of the calendar.
  [[nodiscard]] constexpr bool valid() const noexcept {
    return year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= days_in(month) && hour >= 0 &&
           hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second <= 60;
  }
  [[nodiscard]] constexpr bool leap() const noexcept { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }
  [[nodiscard]] constexpr std::int32_t days_in(std::int32_t m) const noexcept {
    return m == 2 ? 28 + leap() : 30 + ((m + m / 8) & 1);
  }
  /// 1 to 366.
  [[nodiscard]] constexpr std::int32_t day_of_year() const noexcept {
    std::int32_t sum = day;
    for (std::int32_t m = 1; m < month; ++m) sum += days_in(m);
    return sum;
  }
  /// 0 is Monday. (Zeller's congruence, shifted.)
  [[nodiscard]] constexpr std::int32_t weekday() const noexcept {
    const std::int32_t m = month < 3 ? month + 12 : month, y = month < 3 ? year - 1 : year;
    return (day + 13 * (m + 1) / 5 + y + y / 4 - y / 100 + y / 400 + 5) % 7;
  }
};

}  // namespace nihao::jinja

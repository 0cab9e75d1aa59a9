// Dates for templates: the library reads no clock; whoever renders says what time it is.
#pragma once

#include "../../base/error.hpp"
#include "../../base/str.hpp"
#include "options.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace nihao::jinja {

namespace detail {
inline constexpr std::array<std::string_view, 7> weekday_names{"Monday", "Tuesday",  "Wednesday", "Thursday",
                                                               "Friday", "Saturday", "Sunday"};
inline constexpr std::array<std::string_view, 12> month_names{
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"};

/// `value` in at least `width` characters.
inline void append_padded(std::string& out, std::int32_t value, std::size_t width, char fill = '0') {
  const std::string digits = concat(value);
  if (digits.size() < width) out.append(width - digits.size(), fill);
  out += digits;
}

/// ISO 8601: the year and week that a date belongs to.
struct IsoWeek {
  std::int32_t year, week;
};
[[nodiscard]] constexpr IsoWeek iso_week(const DateTime& t) noexcept {
  const auto weeks_in = [](std::int32_t year) {
    const DateTime last{year, 12, 31};
    return 52 +
           (last.weekday() == 3 || (last.weekday() == 4 && last.leap()));  // ends on a Thursday, or on a Friday of a leap year
  };
  const std::int32_t week = (t.day_of_year() - t.weekday() + 9) / 7;
  if (week < 1) return {t.year - 1, weeks_in(t.year - 1)};
  if (week > weeks_in(t.year)) return {t.year + 1, 1};
  return {t.year, week};
}
}  // namespace detail

/// C's strftime in the C locale, for the conversions a date without a zone has. An unknown one stays as it is written, as glibc
/// leaves it.
[[nodiscard]] inline std::string strftime(const DateTime& t, std::string_view format) {
  using detail::append_padded;
  std::string out;
  const auto weekday = static_cast<std::size_t>(t.weekday());
  const auto month = static_cast<std::size_t>(t.month - 1);
  const std::int32_t hour12 = t.hour % 12 == 0 ? 12 : t.hour % 12;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out += format[i];
      continue;
    }
    char c = format[++i];
    const bool bare = c == '-' && i + 1 < format.size();  // %-d: no padding
    if (bare) c = format[++i];
    const auto number = [&](std::int32_t value, std::size_t width, char fill = '0') {
      append_padded(out, value, bare ? 1 : width, fill);
    };
    switch (c) {
      case 'a': out += detail::weekday_names[weekday].substr(0, 3); break;
      case 'A': out += detail::weekday_names[weekday]; break;
      case 'b':
      case 'h': out += detail::month_names[month].substr(0, 3); break;
      case 'B': out += detail::month_names[month]; break;
      case 'c': out += strftime(t, "%a %b %e %H:%M:%S %Y"); break;
      case 'C': number(t.year / 100, 2); break;
      case 'd': number(t.day, 2); break;
      case 'D':
      case 'x': out += strftime(t, "%m/%d/%y"); break;
      case 'e': number(t.day, 2, ' '); break;
      case 'f': out += "000000"; break;
      case 'F': out += strftime(t, "%Y-%m-%d"); break;
      case 'g': number(detail::iso_week(t).year % 100, 2); break;
      case 'G': number(detail::iso_week(t).year, 4); break;
      case 'H': number(t.hour, 2); break;
      case 'I': number(hour12, 2); break;
      case 'j': number(t.day_of_year(), 3); break;
      case 'k': number(t.hour, 2, ' '); break;
      case 'l': number(hour12, 2, ' '); break;
      case 'm': number(t.month, 2); break;
      case 'M': number(t.minute, 2); break;
      case 'n': out += '\n'; break;
      case 'p': out += t.hour < 12 ? "AM" : "PM"; break;
      case 'P': out += t.hour < 12 ? "am" : "pm"; break;
      case 'r': out += strftime(t, "%I:%M:%S %p"); break;
      case 'R': out += strftime(t, "%H:%M"); break;
      case 'S': number(t.second, 2); break;
      case 't': out += '\t'; break;
      case 'T':
      case 'X': out += strftime(t, "%H:%M:%S"); break;
      case 'u': number(t.weekday() + 1, 1); break;
      case 'U': number((t.day_of_year() + 6 - (t.weekday() + 1) % 7) / 7, 2); break;
      case 'V': number(detail::iso_week(t).week, 2); break;
      case 'w': number((t.weekday() + 1) % 7, 1); break;
      case 'W': number((t.day_of_year() + 6 - t.weekday()) / 7, 2); break;
      case 'y': number(t.year % 100, 2); break;
      case 'Y': number(t.year, 1); break;
      case 'z':
      case 'Z': break;  // no zone
      case '%': out += '%'; break;
      default: out += '%', out += c;
    }
  }
  return out;
}

}  // namespace nihao::jinja

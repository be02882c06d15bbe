// Rounding by the definition, for tests: every magnitude of a small format in order, and the two around a
// value.
#pragma once

#include "emulator/formats.hpp"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

using ptxbench::emulator::Rounding;

class SmallFormat {
 public:
  // @p end: the first pattern that is no finite number. e4m3's next value after its largest is 480, at its
  // NaN.
  SmallFormat(int fraction_bits, int bias, std::uint32_t end) : end_(end) {
    for (std::uint32_t bits = 0; bits <= end; ++bits) {
      const int exponent = static_cast<int>(bits >> fraction_bits);
      const std::uint32_t fraction = bits & ((1u << fraction_bits) - 1);
      const std::uint32_t significand = exponent == 0 ? fraction : fraction | 1u << fraction_bits;
      values_.push_back(
          std::ldexp(static_cast<double>(significand), std::max(exponent, 1) - bias - fraction_bits));
    }
  }
  double value(std::uint32_t magnitude) const { return values_[magnitude]; }
  std::uint32_t end() const { return end_; }

  // The pattern of |v + error|'s rounding (v's sign known to the caller), end() where it overflows to
  // infinity; |error| is far less than a unit of v.
  std::uint32_t round(long double v, int error_sign, Rounding rounding) const {
    const bool negative = std::signbit(v);
    const long double magnitude = std::fabs(v);
    const int outward = negative ? -error_sign : error_sign;  // of the magnitude
    const auto above = std::upper_bound(values_.begin(), values_.end(), magnitude);
    auto low = static_cast<std::uint32_t>(above - values_.begin()) - 1;
    bool exact = values_[low] == magnitude && outward == 0;
    if (values_[low] == magnitude && outward < 0 && low > 0) --low;
    if (low >= end_) {
      const bool infinite = rounding == Rounding::nearest_even || rounding == Rounding::nearest_away ||
                            (rounding == Rounding::up && !negative) ||
                            (rounding == Rounding::down && negative);
      return infinite ? end_ : end_ - 1;
    }
    if (exact) return low;
    bool up = false;
    switch (rounding) {
      case Rounding::zero:
        break;
      case Rounding::down:
        up = negative;
        break;
      case Rounding::up:
        up = !negative;
        break;
      default: {
        const long double to_low = magnitude - values_[low], to_high = values_[low + 1] - magnitude;
        int nearer = to_low < to_high ? -1 : to_low > to_high ? 1 : outward;
        if (nearer == 0) nearer = rounding == Rounding::nearest_away || (low & 1) != 0 ? 1 : -1;
        up = nearer > 0;
      }
    }
    return low + (up ? 1 : 0);
  }

 private:
  std::vector<double> values_;
  std::uint32_t end_;
};

inline const SmallFormat& f16() {
  static const SmallFormat format(10, 15, 0x7c00);
  return format;
}
inline const SmallFormat& bf16() {
  static const SmallFormat format(7, 127, 0x7f80);
  return format;
}
inline const SmallFormat& e4m3() {
  static const SmallFormat format(3, 7, 0x7f);
  return format;
}
inline const SmallFormat& e5m2() {
  static const SmallFormat format(2, 15, 0x7c);
  return format;
}

// The host's floating-point unit in another rounding mode.
class HostRounding {
 public:
  explicit HostRounding(Rounding rounding) : before_(std::fegetround()) {
    std::fesetround(rounding == Rounding::zero   ? FE_TOWARDZERO
                    : rounding == Rounding::down ? FE_DOWNWARD
                    : rounding == Rounding::up   ? FE_UPWARD
                                                 : FE_TONEAREST);
  }
  ~HostRounding() { std::fesetround(before_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  int before_;
};

}  // namespace reference

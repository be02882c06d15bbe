// Micro-kernels: one for each form of a scalar instruction. Every thread reads its operands from memory,
// executes the instruction once and writes what it gave. What a card answered is kept in
// tests/fixtures/micro; the emulator must answer the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::testing {

inline constexpr unsigned kMicroThreads = 128;  // one CTA; operands of a form: one 64-bit word a thread each
inline constexpr unsigned kMicroMaxSources = 4, kMicroMaxResults = 2;

// Operand letters. Results and sources:
//   h 16-bit integer  r 32-bit  l 64-bit  e f16  b bf16  x f16x2  y bf16x2  f f32  d f64  p predicate
//   c count (0 to 70)  q bit-field position or length (0 to 40)  k one byte
struct MicroForm {
  std::string text;     // "add.s32", or a whole line with $d0 $d1 $s0.. where it is no plain list
  std::string results;  // letters
  std::string sources;
  std::string tail;  // ", 0x96": behind the last source
  std::string name() const { return text + (tail.empty() ? "" : " " + tail.substr(2)); }
};

inline unsigned micro_bits(char letter) {
  switch (letter) {
    case 'h':
    case 'e':
    case 'b':
      return 16;
    case 'l':
    case 'd':
      return 64;
    default:
      return 32;
  }
}

// splitmix64
inline std::uint64_t micro_random(std::uint64_t& state) {
  std::uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// One operand: special values often, then values of like size (so that sums do not vanish), then any bits.
inline std::uint64_t micro_value(char letter, std::uint64_t& state) {
  const std::uint64_t random = micro_random(state);
  const unsigned choice = random >> 60;
  const auto pick = [&](std::initializer_list<std::uint64_t> list) {
    return list.begin()[(random >> 8) % list.size()];
  };
  const auto half = [&](bool bf16) -> std::uint64_t {
    if (choice < 4)
      return bf16 ? pick({0, 0x8000, 1, 0x8001, 0x7f, 0x80, 0x8080, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0xff7f,
                          0x7f80, 0xff80, 0x7fc0, 0xffc1, 0x4300, 0x3f00})
                  : pick({0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3c01, 0x7bff, 0xfbff,
                          0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x6400, 0x3800});
    if (choice < 11)
      return ((bf16 ? 0x3d80u : 0x3000u) + (random & (bf16 ? 0x3ff : 0x1fff))) | (random >> 16 & 0x8000);
    return random & 0xffff;
  };
  switch (letter) {
    case 'h':
      return choice < 4 ? pick({0, 1, 0xffff, 0x7fff, 0x8000, 2, 0xff, 0x80}) : random & 0xffff;
    case 'r':
      return choice < 4   ? pick({0, 1, 0xffffffff, 0x7fffffff, 0x80000000, 2, 0xffff, 31, 32, 0xff})
             : choice < 7 ? random & 0xff
                          : random & 0xffffffff;
    case 'l':
      return choice < 4   ? pick({0, 1, ~0ull, ~0ull >> 1, 1ull << 63, 2, 0xffffffff, 0x80000000, 63, 64})
             : choice < 7 ? random & 0xffff
                          : random ^ (random << 17);
    case 'c':
      return random % 71;
    case 'q':
      return random % 41;
    case 'k':
      return random & 0xff;
    case 'p':
      return random & 1;
    case 'e':
      return half(false);
    case 'b':
      return half(true);
    case 'x': {
      const std::uint64_t low = half(false);
      std::uint64_t s = state ^ 0x55;
      return low | micro_value('e', s) << 16;
    }
    case 'y': {
      const std::uint64_t low = half(true);
      std::uint64_t s = state ^ 0x55;
      return low | micro_value('b', s) << 16;
    }
    case 'f':
      if (choice < 4)
        return pick({0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000, 0x80800000,
                     0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff, 0x7f7fffff, 0xff7fffff, 0x7f800000,
                     0xff800000, 0x7fc00000, 0x7fa00001, 0xffffffff, 0x4b800000, 0x4b7fffff, 0x3f000000,
                     0x40200000, 0x4f000000, 0x4f800000, 0x5f000000, 0x00400000, 0x33800000});
      if (choice < 11) return (0x3c000000 + (random & 0x07ffffff)) | (random >> 8 & 0x80000000);
      return random & 0xffffffff;
    default:  // d
      if (choice < 4)
        return pick({0, 1ull << 63, 1, 0x000fffffffffffff, 0x0010000000000000, 0x3ff0000000000000,
                     0xbff0000000000000, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
                     0x7ff8000000000000, 0x3fe0000000000000, 0x4330000000000000, 0x43e0000000000000,
                     0x41dfffffffc00000, 0x47efffffe0000000, 0x36a0000000000000, 0x380fffffc0000000});
      if (choice < 11)
        return (0x3f80000000000000 + (random & 0x00ffffffffffffff)) | (random << 3 & 1ull << 63);
      return random ^ (random << 13);
  }
}

inline std::vector<MicroForm> micro_forms() {
  std::vector<MicroForm> out;
  const auto add = [&](std::string text, std::string results, std::string sources, std::string tail = "") {
    out.push_back({std::move(text), std::move(results), std::move(sources), std::move(tail)});
  };
  const auto letter_of = [](const std::string& type) -> std::string {
    if (type == "f16") return "e";
    if (type == "bf16") return "b";
    if (type == "f16x2") return "x";
    if (type == "bf16x2") return "y";
    if (type == "f32") return "f";
    if (type == "f64") return "d";
    if (type == "pred") return "p";
    return type.substr(1) == "16" ? "h" : type.substr(1) == "64" ? "l" : type.substr(1) == "8" ? "k" : "r";
  };
  const auto times = [](const std::string& s, int n) {
    std::string t;
    while (n-- > 0) t += s;
    return t;
  };

  // --- integers and logic ---
  for (const char* t : {"u16", "s16", "u32", "s32", "u64", "s64"}) {
    const std::string type = t, l = letter_of(t);
    for (const char* op : {"add", "sub", "mul.lo", "mul.hi", "min", "max", "div", "rem"})
      add(std::string(op) + "." + type, l, l + l);
    add("mad.lo." + type, l, l + l + l);
    add("mad.hi." + type, l, l + l + l);
    add("shr." + type, l, l + "c");
    if (type[0] == 's') {
      add("abs." + type, l, l);
      add("neg." + type, l, l);
    }
    for (const char* cmp : {"eq", "ne", "lt", "le", "gt", "ge"})
      add("setp." + std::string(cmp) + "." + type, "p", l + l);
  }
  for (const char* t : {"u16", "s16", "u32", "s32"}) {
    const std::string type = t, l = letter_of(t), wide = l == "h" ? "r" : "l";
    add("mul.wide." + type, wide, l + l);
    add("mad.wide." + type, wide, l + l + wide);
  }
  add("add.sat.s32", "r", "rr");
  add("sub.sat.s32", "r", "rr");
  add("mad.hi.sat.s32", "r", "rrr");
  for (const char* t : {"u32", "s32"}) {
    const std::string type = t;
    add("mul24.lo." + type, "r", "rr");
    add("mul24.hi." + type, "r", "rr");
    add("mad24.lo." + type, "r", "rrr");
    add("sad." + type, "r", "rrr");
    add("bfe." + type, "r", "rqq");
    add("bfind." + type, "r", "r");
    add("bfind.shiftamt." + type, "r", "r");
    add("slct." + type + ".s32", "r", "rrr");
    add("slct." + type + ".f32", "r", "rrf");
    add("dp4a." + type + "." + type, "r", "rrr");
    add("dp2a.lo." + type + "." + type, "r", "rrr");
    add("dp2a.hi." + type + "." + type, "r", "rrr");
    add("szext.wrap." + type, "r", "rc");
    add("szext.clamp." + type, "r", "rc");
  }
  add("dp4a.u32.s32", "r", "rrr");
  add("dp4a.s32.u32", "r", "rrr");
  for (const char* t : {"u64", "s64"}) {
    add("bfe." + std::string(t), "l", "lqq");
    add("bfind." + std::string(t), "r", "l");
    add("sad." + std::string(t), "l", "lll");
    add("bfind.shiftamt." + std::string(t), "r", "l");
  }
  for (const char* t : {"b16", "b32", "b64"}) {
    const std::string type = t, l = letter_of(t);
    for (const char* op : {"and", "or", "xor"}) add(std::string(op) + "." + type, l, l + l);
    add("not." + type, l, l);
    add("cnot." + type, l, l);
    add("shl." + type, l, l + "c");
    add("selp." + type, l, l + l + "p");
  }
  for (const char* op : {"and", "or", "xor"}) add(std::string(op) + ".pred", "p", "pp");
  add("not.pred", "p", "p");
  for (const char* t : {"b32", "b64"}) {
    const std::string type = t, l = letter_of(t);
    add("popc." + type, "r", l);
    add("clz." + type, "r", l);
    add("brev." + type, l, l);
    add("bfi." + type, l, l + l + "qq");
  }
  for (const char* m : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"})
    add("prmt.b32" + std::string(m), "r", "rrr");
  for (const char* d : {"l", "r"})
    for (const char* m : {"wrap", "clamp"}) add("shf." + std::string(d) + "." + m + ".b32", "r", "rrc");
  for (const char* lut : {"0x96", "0xe8", "0x1b", "0xca", "0x00", "0xfe"})
    add("lop3.b32", "r", "rrr", std::string(", ") + lut);
  add("lop3.or.b32 $d0|$d1, $s0, $s1, $s2, 0x2a, $s3", "rp", "rrrp");
  add("lop3.and.b32 $d0|$d1, $s0, $s1, $s2, 0x6c, $s3", "rp", "rrrp");
  add("fns.b32", "r", "rqq");
  add("bmsk.clamp.b32", "r", "cc");
  add("bmsk.wrap.b32", "r", "cc");
  add("add.cc.u32 $d0, $s0, $s1;\n\taddc.u32 $d1, $s2, $s3", "rr", "rrrr");
  add("sub.cc.u32 $d0, $s0, $s1;\n\tsubc.u32 $d1, $s2, $s3", "rr", "rrrr");
  add("mad.lo.cc.u32 $d0, $s0, $s1, $s2;\n\tmadc.hi.u32 $d1, $s0, $s1, $s3", "rr", "rrrr");
  add("mad.hi.cc.u32 $d0, $s0, $s1, $s2;\n\taddc.u32 $d1, $s3, 0", "rr", "rrrr");
  add("add.cc.u64 $d0, $s0, $s1;\n\taddc.u64 $d1, $s2, $s3", "ll", "llll");
  for (const char* t : {"u16x2", "s16x2"})
    for (const char* op : {"add", "min", "max"}) add(std::string(op) + "." + t, "r", "rr");
  add("min.relu.s32", "r", "rr");
  add("max.relu.s32", "r", "rr");
  add("min.relu.s16x2", "r", "rr");
  add("max.relu.s16x2", "r", "rr");
  for (const char* b : {"and", "or", "xor"}) {
    add("setp.lt." + std::string(b) + ".s32 $d0|$d1, $s0, $s1, $s2", "pp", "rrp");
    add("setp.ne." + std::string(b) + ".f32 $d0|$d1, $s0, $s1, !$s2", "pp", "ffp");
  }
  for (const char* cmp : {"lo", "ls", "hi", "hs"}) add("setp." + std::string(cmp) + ".u32", "p", "rr");
  add("set.lt.u32.s32", "r", "rr");
  add("set.ge.f32.u32", "r", "rr");
  add("set.gt.u32.f32", "r", "ff");
  add("set.ltu.f32.f32", "r", "ff");
  add("set.eq.s32.u64", "r", "ll");
  add("set.lt.u32.f16", "r", "ee");
  add("set.gt.f16x2.f16x2", "x", "xx");
  add("set.le.bf16x2.bf16x2", "y", "yy");

  // --- floating point ---
  for (const char* r : {"", ".rn", ".rz", ".rm", ".rp"})
    for (const char* f : {"", ".ftz"}) {
      const std::string m = std::string(r) + f;
      for (const char* op : {"add", "sub", "mul"}) {
        add(std::string(op) + m + ".f32", "f", "ff");
        if (*r != 0) add(std::string(op) + m + ".sat.f32", "f", "ff");
      }
      if (*r != 0) {
        add("fma" + m + ".f32", "f", "fff");
        add("fma" + m + ".sat.f32", "f", "fff");
        add("div" + m + ".f32", "f", "ff");
        add("rcp" + m + ".f32", "f", "f");
        add("sqrt" + m + ".f32", "f", "f");
      }
    }
  for (const char* r : {".rn", ".rz", ".rm", ".rp"}) {
    for (const char* op : {"add", "sub", "mul", "div"}) add(std::string(op) + r + ".f64", "d", "dd");
    add("fma" + std::string(r) + ".f64", "d", "ddd");
    add("rcp" + std::string(r) + ".f64", "d", "d");
    add("sqrt" + std::string(r) + ".f64", "d", "d");
  }
  for (const char* f : {"", ".ftz"}) {
    const std::string m = f;
    for (const char* op : {"min", "max"}) {
      add(op + m + ".f32", "f", "ff");
      add(op + m + ".NaN.f32", "f", "ff");
      add(op + m + ".xorsign.abs.f32", "f", "ff");
      add(op + m + ".f16", "e", "ee");
      add(op + m + ".NaN.f16x2", "x", "xx");
      add(op + m + ".xorsign.abs.f16", "e", "ee");
    }
    add("abs" + m + ".f32", "f", "f");
    add("neg" + m + ".f32", "f", "f");
    for (const char* op : {"ex2.approx", "lg2.approx", "rcp.approx", "rsqrt.approx", "sqrt.approx",
                           "sin.approx", "cos.approx"})
      add(op + m + ".f32", "f", "f");
    add("div.approx" + m + ".f32", "f", "ff");
    add("div.full" + m + ".f32", "f", "ff");
    for (const char* cmp :
         {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"})
      add("setp." + std::string(cmp) + m + ".f32", "p", "ff");
    for (const char* op : {"add", "sub", "mul"}) {
      add(op + m + ".f16", "e", "ee");
      add(op + m + ".f16x2", "x", "xx");
      add(op + m + ".sat.f16", "e", "ee");
    }
    add("fma.rn" + m + ".f16", "e", "eee");
    add("fma.rn" + m + ".f16x2", "x", "xxx");
    add("fma.rn" + m + ".sat.f16", "e", "eee");
    add("fma.rn" + m + ".relu.f16x2", "x", "xxx");
    add("abs" + m + ".f16", "e", "e");
    add("neg" + m + ".f16x2", "x", "x");
    add("setp.lt" + m + ".f16", "p", "ee");
    add("setp.gtu" + m + ".f16", "p", "ee");
    add("setp.le.and" + m + ".f16x2 $d0|$d1, $s0, $s1, $s2", "pp", "xxp");
  }
  add("tanh.approx.f32", "f", "f");
  add("rcp.approx.ftz.f64", "d", "d");
  add("rsqrt.approx.ftz.f64", "d", "d");
  add("rsqrt.approx.f64", "d", "d");
  add("ex2.approx.f16", "e", "e");
  add("ex2.approx.f16x2", "x", "x");
  add("ex2.approx.ftz.bf16", "b", "b");
  add("ex2.approx.ftz.bf16x2", "y", "y");
  add("tanh.approx.f16", "e", "e");
  add("tanh.approx.f16x2", "x", "x");
  add("tanh.approx.bf16", "b", "b");
  add("tanh.approx.bf16x2", "y", "y");
  for (const char* op : {"min", "max"}) {
    add(std::string(op) + ".f64", "d", "dd");
    add(std::string(op) + ".bf16", "b", "bb");
    add(std::string(op) + ".NaN.bf16x2", "y", "yy");
    add(std::string(op) + ".xorsign.abs.bf16x2", "y", "yy");
  }
  add("abs.f64", "d", "d");
  add("neg.f64", "d", "d");
  add("copysign.f32", "f", "ff");
  add("copysign.f64", "d", "dd");
  for (const char* k : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
    add("testp." + std::string(k) + ".f32", "p", "f");
    add("testp." + std::string(k) + ".f64", "p", "d");
  }
  for (const char* cmp : {"eq", "ne", "lt", "ge", "leu", "gtu", "num", "nan"})
    add("setp." + std::string(cmp) + ".f64", "p", "dd");
  for (const char* op : {"add.rn", "sub.rn", "mul.rn"}) {
    add(std::string(op) + ".bf16", "b", "bb");
    add(std::string(op) + ".bf16x2", "y", "yy");
  }
  add("fma.rn.bf16", "b", "bbb");
  add("fma.rn.bf16x2", "y", "yyy");
  add("fma.rn.relu.bf16", "b", "bbb");
  add("abs.bf16", "b", "b");
  add("neg.bf16x2", "y", "y");
  add("setp.lt.bf16", "p", "bb");
  add("setp.nan.bf16", "p", "bb");

  // --- conversions ---
  const std::vector<std::string> ints{"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
  for (const std::string& to : ints)
    for (const std::string& from : ints)
      if (to != from) {
        // 8-bit operands live in 16-bit registers.
        const auto letter = [&](const std::string& t) {
          return t.substr(1) == "8" ? std::string("h") : letter_of(t);
        };
        add("cvt." + to + "." + from, letter(to), letter(from));
        // .sat is illegal where every value fits.
        const int to_bits = std::stoi(to.substr(1)), from_bits = std::stoi(from.substr(1));
        const bool fits = to[0] == from[0] ? from_bits <= to_bits : from[0] == 'u' && from_bits < to_bits;
        if (!fits) add("cvt.sat." + to + "." + from, letter(to), letter(from));
      }
  for (const std::string& i : ints) {
    const std::string l = i.substr(1) == "8" ? "h" : letter_of(i);
    for (const char* r : {"rni", "rzi", "rmi", "rpi"}) {
      add("cvt." + std::string(r) + "." + i + ".f32", l, "f");
      add("cvt." + std::string(r) + ".ftz." + i + ".f32", l, "f");
      add("cvt." + std::string(r) + "." + i + ".f64", l, "d");
      add("cvt." + std::string(r) + "." + i + ".f16", l, "e");
    }
    for (const char* r : {"rn", "rz", "rm", "rp"}) {
      add("cvt." + std::string(r) + ".f32." + i, "f", l);
      add("cvt." + std::string(r) + ".f64." + i, "d", l);
    }
    add("cvt.rn.f16." + i, "e", l);
  }
  for (const char* r : {"rn", "rz", "rm", "rp"}) add("cvt." + std::string(r) + ".f32.f64", "f", "d");
  for (const char* r : {"rn", "rz"}) {
    add("cvt." + std::string(r) + ".f16.f32", "e", "f");
    add("cvt." + std::string(r) + ".bf16.f32", "b", "f");
    add("cvt." + std::string(r) + ".relu.bf16.f32", "b", "f");
    add("cvt." + std::string(r) + ".f16x2.f32", "x", "ff");
    add("cvt." + std::string(r) + ".bf16x2.f32", "y", "ff");
    add("cvt." + std::string(r) + ".relu.f16x2.f32", "x", "ff");
    add("cvt." + std::string(r) + ".relu.bf16x2.f32", "y", "ff");
  }
  add("cvt.rn.f16.f64", "e", "d");
  add("cvt.f32.f16", "f", "e");
  add("cvt.f64.f16", "d", "e");
  add("cvt.f32.bf16", "f", "b");
  add("cvt.f64.f32", "d", "f");
  add("cvt.ftz.f64.f32", "d", "f");
  add("cvt.rn.ftz.f32.f64", "f", "d");
  add("cvt.ftz.f32.f16", "f", "e");
  for (const char* r : {"rni", "rzi", "rmi", "rpi"}) {
    add("cvt." + std::string(r) + ".f32.f32", "f", "f");
    add("cvt." + std::string(r) + ".f64.f64", "d", "d");
    add("cvt." + std::string(r) + ".f16.f16", "e", "e");
  }
  add("cvt.sat.f32.f32", "f", "f");
  add("cvt.ftz.sat.f32.f32", "f", "f");
  add("cvt.rn.sat.f32.f64", "f", "d");
  add("cvt.rn.sat.f16.f32", "e", "f");
  add("cvt.rna.tf32.f32", "f", "f");
  add("cvt.rn.tf32.f32", "f", "f");
  add("cvt.rz.tf32.f32", "f", "f");
  add("cvt.rn.relu.tf32.f32", "f", "f");
  for (const char* f8 : {"e4m3x2", "e5m2x2"}) {
    add("cvt.rn.satfinite." + std::string(f8) + ".f32", "h", "ff");
    add("cvt.rn.satfinite.relu." + std::string(f8) + ".f32", "h", "ff");
    add("cvt.rn.satfinite." + std::string(f8) + ".f16x2", "h", "x");
    add("cvt.rn.f16x2." + std::string(f8), "x", "h");
    add("cvt.rn.relu.f16x2." + std::string(f8), "x", "h");
  }
  for (const char* t : {"u16", "s16"}) add("cvt.pack.sat." + std::string(t) + ".s32", "r", "rr");
  for (const char* t : {"u8", "s8"}) add("cvt.pack.sat." + std::string(t) + ".s32.b32", "r", "rrr");

  // --- moves, warps ---
  add("mov.b32 $d0, {$s0, $s1}", "r", "hh");
  add("mov.b64 $d0, {$s0, $s1}", "l", "rr");
  add("mov.b64 {$d0, $d1}, $s0", "rr", "l");
  add("mov.b32 {$d0, $d1}, $s0", "hh", "r");
  add("mov.b64 {_, $d0}, $s0", "r", "l");
  for (const char* m : {"up", "down", "bfly", "idx"})
    for (const char* c : {"0x1f", "0x0", "0x181f", "0x1c07", "0x1003"})
      for (const char* b : {"1", "3", "16"})
        add("shfl.sync." + std::string(m) + ".b32 $d0|$d1, $s0, " + b + ", " + c + ", 0xffffffff", "rp", "r");
  add("shfl.sync.idx.b32 $d0|$d1, $s0, $s1, 0x1f, 0xffffffff", "rp", "rc");
  for (const char* m : {"all", "any", "uni"})
    add("vote.sync." + std::string(m) + ".pred $d0, $s0, 0xffffffff", "p", "p");
  add("vote.sync.ballot.b32 $d0, $s0, 0xffffffff", "r", "p");
  add("match.any.sync.b32 $d0, $s0, 0xffffffff", "r", "q");
  add("match.any.sync.b64 $d0, $s0, 0xffffffff", "r", "l");
  add("match.all.sync.b32 $d0|$d1, $s0, 0xffffffff", "rp", "q");
  for (const char* op : {"add", "min", "max"})
    for (const char* t : {"u32", "s32"})
      add("redux.sync." + std::string(op) + "." + t + " $d0, $s0, 0xffffffff", "r", "r");
  for (const char* op : {"and", "or", "xor"})
    add("redux.sync." + std::string(op) + ".b32 $d0, $s0, 0xffffffff", "r", "r");
  add("activemask.b32 $d0;\n\tadd.u32 $d0, $d0, $s0", "r", "r");

  // --- memory: each thread has 16 bytes of its own at [$m] (global) and [$w] (shared), holding $s0 ---
  for (const char* space : {"global", "shared"}) {
    const std::string s = space, at = s == "global" ? "[$m]" : "[$w]";
    const auto atom = [&](const std::string& op, const std::string& letter, int operands,
                          const std::string& width) {
      std::string line =
          "st." + s + ".b" + width + " " + at + ", $s0;\n\tatom." + s + "." + op + " $d0, " + at;
      for (int i = 1; i <= operands; ++i) line += ", $s" + std::to_string(i);
      add(line + ";\n\tld." + s + ".b" + width + " $d1, " + at, letter + letter, times(letter, operands + 1));
    };
    for (const char* op : {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "inc.u32",
                           "dec.u32", "and.b32", "or.b32", "xor.b32", "exch.b32"})
      atom(op, "r", 1, "32");
    for (const char* op :
         {"add.u64", "min.u64", "min.s64", "max.u64", "max.s64", "and.b64", "or.b64", "xor.b64", "exch.b64"})
      atom(op, "l", 1, "64");
    atom("cas.b32", "r", 2, "32");
    atom("cas.b64", "l", 2, "64");
    atom("cas.b16", "h", 2, "16");
    atom("add.f32", "f", 1, "32");
    atom("add.f64", "d", 1, "64");
    atom("add.noftz.f16x2", "x", 1, "32");
    atom("add.noftz.f16", "e", 1, "16");
    atom("add.noftz.bf16x2", "y", 1, "32");
    atom("add.noftz.bf16", "b", 1, "16");
    for (const char* t : {"u8", "s8", "u16", "s16", "u32", "s32"})
      add("st." + s + ".b64 " + at + ", $s0;\n\tld." + s + "." + t + " $d0, " + at, "r", "l");
    for (const char* t : {"u8", "s8", "u16", "s16", "u32", "s32", "b64"})
      add("st." + s + ".b64 " + at + ", $s0;\n\tld." + s + "." + t + " $d0, " + at, "l", "l");
    add("st." + s + ".v2.b32 " + at + ", {$s0, $s1};\n\tld." + s + ".v2.b32 {$d1, $d0}, " + at, "rr", "rr");
    add("st." + s + ".v4.b16 " + at + ", {$s0, $s1, $s2, $s3};\n\tld." + s + ".v2.b32 {$d0, $d1}, " + at,
        "rr", "hhhh");
  }
  return out;
}

// The PTX of the forms [first, last) as entries micro_<index>(sources, results, scratch): sources and results
// are arrays [operand][thread] of 64-bit words; scratch has 16 bytes a thread.
inline std::string micro_module(const std::vector<MicroForm>& forms, std::size_t first, std::size_t last) {
  std::string ptx = ".version 8.6\n.target sm_90a\n.address_size 64\n";
  for (std::size_t i = first; i < last; ++i) {
    const MicroForm& form = forms[i];
    const std::string name = "micro_" + std::to_string(i);
    ptx += ".visible .entry " + name +
           "(.param .u64 p_sources, .param .u64 p_results, .param .u64 p_scratch)\n{\n";
    ptx +=
        "\t.reg .b64 %in, %out, %scratch, %offset, %wide;\n\t.reg .b32 %thread, %part, %place, %low;\n\t.reg "
        ".b16 %half;\n\t.reg .pred %zero;\n";
    ptx += "\t.shared .align 16 .b8 window[" + std::to_string(kMicroThreads * 16) + "];\n";
    ptx +=
        "\tmov.u32 %thread, %tid.x;\n\tld.param.u64 %in, [p_sources];\n\tld.param.u64 %out, "
        "[p_results];\n\tld.param.u64 %scratch, [p_scratch];\n";
    ptx +=
        "\tmul.wide.u32 %offset, %thread, 8;\n\tadd.u64 %in, %in, %offset;\n\tadd.u64 %out, %out, %offset;\n";
    ptx +=
        "\tmul.wide.u32 %offset, %thread, 16;\n\tadd.u64 %scratch, %scratch, %offset;\n\tmov.u32 %place, "
        "window;\n\tshl.b32 %part, %thread, 4;\n\tadd.u32 %place, %place, %part;\n";
    const auto declare = [&](char letter, const std::string& reg) {
      ptx += letter == 'p' ? "\t.reg .pred " + reg + ";\n"
                           : "\t.reg .b" + std::to_string(micro_bits(letter)) + " " + reg + ";\n";
    };
    for (std::size_t s = 0; s < form.sources.size(); ++s) {
      const char letter = form.sources[s];
      const std::string reg = "%s" + std::to_string(s),
                        at = "[%in+" + std::to_string(s * kMicroThreads * 8) + "]";
      declare(letter, reg);
      if (letter == 'p')
        ptx += "\tld.global.b32 %low, " + at + ";\n\tsetp.ne.u32 " + reg + ", %low, 0;\n";
      else
        ptx += "\tld.global.b" + std::to_string(micro_bits(letter)) + " " + reg + ", " + at + ";\n";
    }
    for (std::size_t d = 0; d < form.results.size(); ++d) declare(form.results[d], "%d" + std::to_string(d));
    std::string line = form.text;
    if (line.find('$') == std::string::npos) {
      line += " $d0";
      for (std::size_t s = 0; s < form.sources.size(); ++s) line += ", $s" + std::to_string(s);
      line += form.tail;
    }
    for (std::size_t at; (at = line.find("$m")) != std::string::npos;) line.replace(at, 2, "%scratch");
    for (std::size_t at; (at = line.find("$w")) != std::string::npos;) line.replace(at, 2, "%place");
    for (char& c : line)
      if (c == '$') c = '%';
    ptx += "\t" + line + ";\n";
    for (std::size_t d = 0; d < form.results.size(); ++d) {
      const char letter = form.results[d];
      const std::string reg = "%d" + std::to_string(d),
                        at = "[%out+" + std::to_string(d * kMicroThreads * 8) + "]";
      if (letter == 'p')
        ptx += "\tselp.u32 %low, 1, 0, " + reg + ";\n\tst.global.b32 " + at + ", %low;\n";
      else
        ptx += "\tst.global.b" + std::to_string(micro_bits(letter)) + " " + at + ", " + reg + ";\n";
    }
    ptx += "\tret;\n}\n";
  }
  return ptx;
}

// Operands of form @p index, [operand][thread].
inline std::vector<std::uint64_t> micro_operands(const MicroForm& form, std::size_t index) {
  std::vector<std::uint64_t> out(kMicroMaxSources * kMicroThreads);
  std::uint64_t state = 0x5ca1ab1e + index * 0x10001;
  for (std::size_t s = 0; s < form.sources.size(); ++s)
    for (unsigned t = 0; t < kMicroThreads; ++t)
      out[s * kMicroThreads + t] = micro_value(form.sources[s], state);
  return out;
}

}  // namespace ptxbench::testing

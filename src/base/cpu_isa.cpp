#include "base/cpu_isa.h"

#include <array>
#include <cstdlib>

#include "base/error.h"

namespace blockdraft {

namespace {

constexpr std::array kAll{CpuIsa::portable, CpuIsa::avx2, CpuIsa::avx512, CpuIsa::avx512_bf16};

bool supports(CpuIsa isa) {
#if defined(__x86_64__)
  switch (isa) {
    case CpuIsa::portable:
      return true;
    case CpuIsa::avx2:
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    case CpuIsa::avx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case CpuIsa::avx512_bf16:
      return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi") &&
             __builtin_cpu_supports("avx512vnni");
  }
#endif
  return isa == CpuIsa::portable;
}

}  // namespace

const char* name_of(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::portable:
      return "portable";
    case CpuIsa::avx2:
      return "avx2";
    case CpuIsa::avx512:
      return "avx512";
    case CpuIsa::avx512_bf16:
      return "avx512_bf16";
  }
  return "";
}

CpuIsa best_cpu_isa() {
  CpuIsa best = CpuIsa::portable;
  for (const CpuIsa isa : kAll) {
    if (!supports(isa)) break;
    best = isa;
  }
  return best;
}

bool uses_avx512_vnni([[maybe_unused]] CpuIsa isa) {
#if defined(__x86_64__)
  return isa >= CpuIsa::avx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

Result<CpuIsa> choose_cpu_isa(std::string_view name) {
  const char* source = "option cpu_isa";
  if (name.empty()) {
    const char* value = std::getenv("BLOCKDRAFT_CPU_ISA");
    if (value == nullptr || *value == '\0') return best_cpu_isa();
    name = value;
    source = "BLOCKDRAFT_CPU_ISA";
  }
  for (const CpuIsa isa : kAll) {
    if (name != name_of(isa)) continue;
    if (isa <= best_cpu_isa()) return isa;
    return make_error(Code::unsupported, "{} is '{}', this processor has {} at most", source, name,
                      name_of(best_cpu_isa()));
  }
  return make_error(Code::invalid_argument, "{} is '{}', expected portable, avx2, avx512 or avx512_bf16", source, name);
}

}  // namespace blockdraft

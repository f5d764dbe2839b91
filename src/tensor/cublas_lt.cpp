#include "tensor/cublas_lt.h"

#include <map>
#include <string>
#include <utility>

#include <cublasLt.h>
#include <dlfcn.h>

#include "base/error.h"
#include "tensor/cuda_device.h"

namespace blockdraft {
namespace {

// The functions of the library that are used, found by their names.
struct Functions {
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtGetStatusName) status_name;
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtMatrixLayoutInit_internal) init_layout;
  decltype(&cublasLtMatmulDescInit_internal) init_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatmulPreferenceInit_internal) init_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
  decltype(&cublasLtMatmul) multiply;
};

// The major version that the header is of: its structures are the library's.
std::string versioned_name() { return fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR); }

// Why the loader refused the last thing that it was asked for.
std::string loader_error() {
  const char* text = dlerror();
  return text == nullptr ? "no reason given" : text;
}

template <class Function>
Status find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function != nullptr) return {};
  return make_error(Code::not_found, "cuBLASLt: the library has no {}: {}", name, loader_error());
}

Status find_all(void* library, Functions& functions) {
  BLOCKDRAFT_TRY(find(library, "cublasLtGetVersion", functions.version));
  BLOCKDRAFT_TRY(find(library, "cublasLtGetStatusName", functions.status_name));
  BLOCKDRAFT_TRY(find(library, "cublasLtCreate", functions.create));
  BLOCKDRAFT_TRY(find(library, "cublasLtDestroy", functions.destroy));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatrixLayoutInit_internal", functions.init_layout));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatmulDescInit_internal", functions.init_operation));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatmulDescSetAttribute", functions.set_operation));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatmulPreferenceInit_internal", functions.init_preference));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatmulPreferenceSetAttribute", functions.set_preference));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatmulAlgoGetHeuristic", functions.choose));
  BLOCKDRAFT_TRY(find(library, "cublasLtMatmul", functions.multiply));
  return {};
}

// It stays in the process: the card may still have its code.
Result<Functions> open_library() {
  const std::string name = versioned_name();
  void* library = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string reason = loader_error();
    library = dlopen("libcublasLt.so", RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) return make_error(Code::not_found, "{}: cannot be opened: {}", name, reason);
  }
  Functions functions{};
  BLOCKDRAFT_TRY(find_all(library, functions));
  constexpr size_t kMajor = 10000;  // of a version
  if (const size_t found = functions.version(); found / kMajor != CUBLAS_VER_MAJOR) {
    return make_error(Code::not_found, "libcublasLt.so: the version is {}, expected {}.x", found, CUBLAS_VER_MAJOR);
  }
  return functions;
}

// What a shape is computed with. To the library, whose matrices go by columns, ours are their transposes:
// out^T [N, M] = weight [N, K] * x^T [K, M].
struct Plan {
  cublasLtMatrixLayoutOpaque_t weight;
  cublasLtMatrixLayoutOpaque_t x;
  cublasLtMatrixLayoutOpaque_t out;
  cublasLtMatmulAlgo_t algorithm;
};

}  // namespace

struct CublasLt::State {
  CudaDevice& device;
  Functions functions;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatmulPreferenceOpaque_t preference{};
  std::map<Shape, Plan> plans;

  State(CudaDevice& card, const Functions& found) : device(card), functions(found) {}
  ~State() {
    if (handle != nullptr) functions.destroy(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Status init();
  cublasStatus_t set_operation();
  cublasStatus_t set_preference();
  cublasStatus_t make_plan(const Shape& shape, Plan& plan);
  Plan* plan_for(const Shape& shape);
  void note(cublasStatus_t status) {
    // The name is the library's, which stays.
    if (status != CUBLAS_STATUS_SUCCESS) device.note(cudaErrorUnknown, functions.status_name(status));
  }
};

cublasStatus_t CublasLt::State::set_operation() {
  const auto status = functions.init_operation(&operation, sizeof(operation), CUBLAS_COMPUTE_32F, CUDA_R_32F);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  const cublasOperation_t transposed = CUBLAS_OP_T;  // rows of the weight are columns to the library
  return functions.set_operation(&operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed));
}

// Parts of K may be summed apart only if they are added in float32, in one order, by a kernel of its own.
cublasStatus_t CublasLt::State::set_preference() {
  auto status = functions.init_preference(&preference, sizeof(preference));
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    if (status == CUBLAS_STATUS_SUCCESS)
      status = functions.set_preference(&preference, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(attribute, uint32_t{kAlignment});
  }
  return status;
}

Status CublasLt::State::init() {
  device.make_current();
  auto status = functions.create(&handle);
  if (status == CUBLAS_STATUS_SUCCESS) status = set_operation();
  if (status == CUBLAS_STATUS_SUCCESS) status = set_preference();
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return make_error(Code::unsupported, "cuBLASLt {}: does not work with card {} ({}): {}", functions.version(),
                    device.index(), device.name(), functions.status_name(status));
}

// The first algorithm that the library names for the shape.
cublasStatus_t CublasLt::State::make_plan(const Shape& shape, Plan& plan) {
  auto status = CUBLAS_STATUS_SUCCESS;
  const auto lay_out = [&](cublasLtMatrixLayoutOpaque_t& layout, cudaDataType type, int64_t rows, int64_t columns,
                           int64_t stride) {
    if (status != CUBLAS_STATUS_SUCCESS) return;
    status = functions.init_layout(&layout, sizeof(layout), type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), stride);
  };
  lay_out(plan.weight, CUDA_R_16BF, shape.in_features, shape.out_features, shape.in_features);
  lay_out(plan.x, CUDA_R_16BF, shape.in_features, shape.rows, shape.x_stride);
  lay_out(plan.out, CUDA_R_32F, shape.out_features, shape.rows, shape.out_stride);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  cublasLtMatmulHeuristicResult_t chosen{};
  int count = 0;
  status = functions.choose(handle, &operation, &plan.weight, &plan.x, &plan.out, &plan.out, &preference, 1, &chosen,
                            &count);
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  if (count == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
  plan.algorithm = chosen.algo;
  return chosen.state;
}

// Null, and an error that is noted, if the library has no algorithm for it.
Plan* CublasLt::State::plan_for(const Shape& shape) {
  if (const auto known = plans.find(shape); known != plans.end()) return &known->second;
  Plan plan{};
  const cublasStatus_t status = make_plan(shape, plan);
  note(status);
  if (status != CUBLAS_STATUS_SUCCESS) return nullptr;
  return &plans.emplace(shape, plan).first->second;
}

CublasLt::CublasLt(std::unique_ptr<State> state) : state_(std::move(state)) {}
CublasLt::~CublasLt() = default;

Result<std::shared_ptr<CublasLt>> CublasLt::open(CudaDevice& device) {
  BLOCKDRAFT_ASSIGN(const Functions functions, open_library());
  auto state = std::make_unique<State>(device, functions);
  BLOCKDRAFT_TRY(state->init());
  return std::shared_ptr<CublasLt>(new CublasLt(std::move(state)));
}

void CublasLt::multiply(const Product& product, void* workspace) {
  State& state = *state_;
  Plan* plan = state.plan_for(product.shape);
  if (plan == nullptr || state.device.skips()) return;
  const float before = product.shape.accumulate ? 1.0f : 0.0f;
  state.note(state.functions.multiply(state.handle, &state.operation, &product.scale, product.weight, &plan->weight,
                                      product.x, &plan->x, &before, product.out, &plan->out, product.out, &plan->out,
                                      &plan->algorithm, workspace, kWorkspaceBytes, state.device.stream()));
}

}  // namespace blockdraft

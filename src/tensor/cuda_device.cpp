#include "tensor/cuda_device.h"

#include <cstring>
#include <utility>

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "tensor/buffer.h"

namespace blockdraft {
namespace {

Error cuda_error(Code code, const char* what, cudaError_t error) {
  return make_error(code, "CUDA: {}: {} ({})", what, cudaGetErrorString(error), cudaGetErrorName(error));
}

// Runtime and driver versions are 1000 * major + 10 * minor.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

Status check_driver() {
  int driver = 0;
  if (const cudaError_t error = cudaDriverGetVersion(&driver); error != cudaSuccess || driver == 0) {
    return make_error(Code::not_found, "CUDA: no driver found, expected one for CUDA {} or newer",
                      version_text(CUDART_VERSION / 1000 * 1000));
  }
  if (driver < CUDART_VERSION / 1000 * 1000) {
    return make_error(Code::unsupported, "CUDA: the driver is for CUDA {}, expected {} or newer", version_text(driver),
                      version_text(CUDART_VERSION / 1000 * 1000));
  }
  return {};
}

Status check_index(int index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess && error != cudaErrorNoDevice)
    return cuda_error(Code::unsupported, "looking for cards", error);
  if (index >= 0 && index < count) return {};
  if (count == 0) return make_error(Code::not_found, "CUDA: card {} asked for, found no card", index);
  return make_error(Code::not_found, "CUDA: card {} asked for, expected 0 to {}: found {}", index, count - 1, count);
}

// Only cards of 9.0 have machine code here; for others the driver makes it of PTX, which it must be new enough to read.
Status check_code(const cudaDeviceProp& properties) {
  if (properties.major == 9 && properties.minor == 0) return {};
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver >= CUDART_VERSION) return {};
  return make_error(Code::unsupported, "CUDA: the driver is for CUDA {}, expected {} or newer for {}",
                    version_text(driver), version_text(CUDART_VERSION), properties.name);
}

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(int index) {
  BLOCKDRAFT_TRY(check_driver());
  BLOCKDRAFT_TRY(check_index(index));
  cudaDeviceProp properties;
  if (const cudaError_t error = cudaGetDeviceProperties(&properties, index); error != cudaSuccess) {
    return cuda_error(Code::unsupported, "properties of the card", error);
  }
  if (properties.major < kMinMajor) {
    return make_error(Code::unsupported, "CUDA: card {} ({}) has compute capability {}.{}, expected {}.0 or higher",
                      index, properties.name, properties.major, properties.minor, kMinMajor);
  }
  BLOCKDRAFT_TRY(check_code(properties));
  std::unique_ptr<CudaDevice> device(new CudaDevice());
  device->index_ = index;
  device->name_ = properties.name;
  device->num_multiprocessors_ = properties.multiProcessorCount;
  device->compute_capability_ = 10 * properties.major + properties.minor;
  if (const cudaError_t error = cudaSetDevice(index); error != cudaSuccess) {
    return cuda_error(Code::unsupported, "choosing the card", error);
  }
  if (const cudaError_t error = cudaStreamCreateWithFlags(&device->stream_, cudaStreamNonBlocking);
      error != cudaSuccess) {
    return cuda_error(Code::unsupported, "creating a stream", error);
  }
  for (CUevent_st*& mark : device->marks_) {
    if (const cudaError_t error = cudaEventCreate(&mark); error != cudaSuccess) {
      return cuda_error(Code::unsupported, "creating an event", error);
    }
  }
  return device;
}

CudaDevice::~CudaDevice() {
  for (CUevent_st* mark : marks_) {
    if (mark != nullptr) cudaEventDestroy(mark);
  }
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

CudaDevice::Memory CudaDevice::memory() {
  Memory memory;
  note(cudaSetDevice(index_), "choosing the card");
  note(cudaMemGetInfo(&memory.free, &memory.total), "asking for the free memory");
  return memory;
}

void CudaDevice::make_current() { note(cudaSetDevice(index_), "choosing the card"); }

void CudaDevice::copy_to_device(void* device, const void* host, size_t size_bytes, const char* what) {
  if (size_bytes > 0 && !skips_) note(cudaMemcpyAsync(device, host, size_bytes, cudaMemcpyHostToDevice, stream_), what);
}

void CudaDevice::copy_to_host(void* host, const void* device, size_t size_bytes, const char* what) {
  if (size_bytes > 0 && !skips_) note(cudaMemcpyAsync(host, device, size_bytes, cudaMemcpyDeviceToHost, stream_), what);
}

void CudaDevice::copy_on_device(void* to, const void* from, size_t size_bytes, const char* what) {
  if (size_bytes > 0 && !skips_) note(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDeviceToDevice, stream_), what);
}

void CudaDevice::fill(void* device, uint8_t value, size_t size_bytes, const char* what) {
  if (size_bytes > 0 && !skips_) note(cudaMemsetAsync(device, value, size_bytes, stream_), what);
}

void CudaDevice::mark(int index) {
  if (skips_) return;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  note(cudaStreamIsCapturing(stream_, &status), "marking a time");
  // As a node of a graph, an event is recorded anew by each launch.
  const unsigned flags = status == cudaStreamCaptureStatusNone ? cudaEventRecordDefault : cudaEventRecordExternal;
  note(cudaEventRecordWithFlags(marks_[index], stream_, flags), "marking a time");
}

float CudaDevice::elapsed_us(int from, int to) {
  float ms = 0.0f;
  if (!skips_) note(cudaEventElapsedTime(&ms, marks_[from], marks_[to]), "taking a time");
  return 1000.0f * ms;
}

void CudaDevice::wait() {
  if (!skips_) note(cudaStreamSynchronize(stream_), "work on the stream");
}

Status CudaDevice::synchronize() {
  wait();
  const int error = std::exchange(first_error_, 0);
  if (error == 0) return {};
  return cuda_error(Code::io_error, failed_operation_, static_cast<cudaError_t>(error));
}

namespace {

Result<void*> allocated(CudaDevice& device, void* data, cudaError_t error, size_t size_bytes, const char* what) {
  if (error == cudaSuccess) return data;
  cudaGetLastError();  // an allocation that fails leaves nothing broken behind
  if (error != cudaErrorMemoryAllocation) return cuda_error(Code::io_error, what, error);
  const CudaDevice::Memory memory = device.memory();
  return make_error(Code::out_of_memory, "{}: {} bytes do not fit on card {} ({}), free are {} of {}", what, size_bytes,
                    device.index(), device.name(), memory.free, memory.total);
}

}  // namespace

Result<Buffer> Buffer::allocate_on(CudaDevice& device, size_t size_bytes, const char* what) {
  Buffer buffer;
  if (size_bytes == 0) return buffer;
  device.make_current();
  void* data = nullptr;
  constexpr size_t kGranule = 256;  // kernels may read up to 16 bytes behind what they need (ops/cuda/linear_stream.h)
  const cudaError_t error = cudaMalloc(&data, (size_bytes + kGranule - 1) / kGranule * kGranule);
  BLOCKDRAFT_ASSIGN(buffer.data_, allocated(device, data, error, size_bytes, what));
  buffer.size_bytes_ = size_bytes;
  buffer.release_ = [](void* memory, size_t) { cudaFree(memory); };
  device.fill(data, 0, size_bytes, what);
  return buffer;
}

Result<Buffer> Buffer::allocate_pinned(CudaDevice& device, size_t size_bytes, const char* what) {
  Buffer buffer;
  if (size_bytes == 0) return buffer;
  device.make_current();
  void* data = nullptr;
  if (const cudaError_t error = cudaMallocHost(&data, size_bytes); error != cudaSuccess) {
    cudaGetLastError();
    if (error != cudaErrorMemoryAllocation) return cuda_error(Code::io_error, what, error);
    return make_error(Code::out_of_memory, "{}: the system refused {} bytes of pinned memory", what, size_bytes);
  }
  buffer.data_ = data;
  buffer.size_bytes_ = size_bytes;
  buffer.release_ = [](void* memory, size_t) { cudaFreeHost(memory); };
  std::memset(data, 0, size_bytes);
  return buffer;
}

}  // namespace blockdraft

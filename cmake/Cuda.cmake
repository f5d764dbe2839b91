# The CUDA backend.
set(BLOCKDRAFT_CUDA_LIBRARIES)
if(BLOCKDRAFT_CUDA)
  # Code for Hopper with what it alone has, and PTX from which the driver makes code for every other card from 8.0 on.
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(CMAKE_CUDA_FLAGS_INIT "-gencode arch=compute_90a,code=sm_90a -gencode arch=compute_80,code=compute_80")
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  find_package(CUDAToolkit 12.4 REQUIRED)
  set(BLOCKDRAFT_CUDA_LIBRARIES CUDA::cudart_static)
endif()

#include "platform.h"

#include <malloc.h>
#include <windows.h>

namespace octavo {

void* allocate_aligned(size_t alignment, size_t bytes) noexcept { return _aligned_malloc(bytes, alignment); }

void free_aligned(void* memory) noexcept { _aligned_free(memory); }

void* map_zeroed(size_t bytes) noexcept { return VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE); }

void unmap_zeroed(void* memory, size_t) noexcept { VirtualFree(memory, 0, MEM_RELEASE); }

// Large pages need a privilege that few accounts have.
void advise_huge_pages(void*, size_t, bool) noexcept {}

// Node's descriptors belong to a C runtime of its own: an addon cannot turn them into the system's handles.
bool lock_open_file(int) noexcept { return false; }

// Left to the system, whose processors come in groups.
void run_on_cores(const std::vector<int>&) noexcept {}

}  // namespace octavo

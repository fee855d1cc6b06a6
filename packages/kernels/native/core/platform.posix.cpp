#include "platform.h"

#include <sys/file.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sched.h>
#endif

#include <cstdlib>

namespace octavo {

void* allocate_aligned(size_t alignment, size_t bytes) noexcept { return std::aligned_alloc(alignment, bytes); }

void free_aligned(void* memory) noexcept { std::free(memory); }

void* map_zeroed(size_t bytes) noexcept {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void unmap_zeroed(void* memory, size_t bytes) noexcept { munmap(memory, bytes); }

void advise_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t bytes, [[maybe_unused]] bool wanted) noexcept {
#ifdef MADV_HUGEPAGE
    madvise(memory, bytes, wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
}

bool lock_open_file(int descriptor) noexcept { return flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

void run_on_cores([[maybe_unused]] const std::vector<int>& cores) noexcept {
#ifdef __linux__
    if (cores.empty()) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : cores) {
        if (core >= 0 && core < CPU_SETSIZE) CPU_SET(core, &set);
    }
    sched_setaffinity(0, sizeof set, &set);
#endif
}

}  // namespace octavo

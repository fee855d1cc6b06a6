#pragma once
#include <cstddef>
#include <vector>

namespace octavo {

/// Memory of unknown content; `alignment` is a power of two that divides `bytes`. Null when there is none.
void* allocate_aligned(size_t alignment, size_t bytes) noexcept;
/// Frees what `allocate_aligned` returned; null is allowed.
void free_aligned(void* memory) noexcept;

/// Whole pages of zeros straight from the system. Null when there are none.
void* map_zeroed(size_t bytes) noexcept;
/// All of what one `map_zeroed` returned.
void unmap_zeroed(void* memory, size_t bytes) noexcept;
/// Tells the system whether huge pages are wanted for a range of a mapping, where it can be told.
void advise_huge_pages(void* memory, size_t bytes, bool wanted) noexcept;

/// Locks an open file against every other opening of it until it is closed. False when another has it.
bool lock_open_file(int descriptor) noexcept;

/// Keeps the calling thread on these logical processors, where the system can; none means all.
void run_on_cores(const std::vector<int>& cores) noexcept;

}  // namespace octavo

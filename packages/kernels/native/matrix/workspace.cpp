#include <new>

#include "../core/platform.h"
#include "matrix.h"

namespace octavo {

void* Workspace::get(int slot, size_t bytes) {
    const size_t index = static_cast<size_t>(slot);
    if (index >= slots_.size()) slots_.resize(index + 1, {nullptr, 0});
    auto& [data, capacity] = slots_[index];
    if (bytes > capacity || data == nullptr) {
        const size_t rounded = (bytes + 63) / 64 * 64 + 64;
        void* grown = allocate_aligned(64, rounded);
        if (grown == nullptr) throw std::bad_alloc();
        free_aligned(data);
        data = grown;
        capacity = rounded;
    }
    return data;
}

Workspace::~Workspace() {
    for (auto& [data, capacity] : slots_) free_aligned(data);
}

}  // namespace octavo

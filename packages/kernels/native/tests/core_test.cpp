// Mapped files, aligned memory, half-precision conversions, the choice of instruction set, and the workspace.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../core/aligned_memory.h"
#include "../core/half.h"
#include "../core/isa.h"
#include "../core/mapped_file.h"
#include "../matrix/matrix.h"
#include "support/check.h"
#include "support/temporary_file.h"

namespace octavo::test {

namespace {

void check_mapped_file() {
    std::string content;
    for (int i = 0; i < 20000; ++i) content += static_cast<char>(i * 7);
    const TemporaryFile file(content);
    const MappedFile mapped(file.path());
    CHECK(mapped.path() == file.path());
    CHECK(mapped.size() == content.size());
    CHECK(std::memcmp(mapped.data(), content.data(), content.size()) == 0);
    mapped.release(100, 10000);
    mapped.release(0, std::numeric_limits<size_t>::max());
    mapped.release(content.size() + 5, 10);
    CHECK(std::memcmp(mapped.data(), content.data(), content.size()) == 0);
    mapped.populate(4097, 1);
    mapped.populate(100, std::numeric_limits<size_t>::max());
    mapped.populate(content.size(), 10);
    CHECK(std::memcmp(mapped.data(), content.data(), content.size()) == 0);

    const TemporaryFile empty("");
    CHECK(MappedFile(empty.path()).size() == 0);
    MappedFile(empty.path()).populate(0, 1);
    const std::string missing = message_of([] { MappedFile("/tmp/octavo/no/such/file"); });
    CHECK(missing.find("/tmp/octavo/no/such/file") != std::string::npos && missing.find("No such file") != std::string::npos);
    CHECK(message_of([] { MappedFile("/tmp"); }).find("not a regular file") != std::string::npos);
}

void check_aligned_memory() {
    for (const size_t bytes : {size_t{1}, size_t{1000}, (size_t{4} << 20) + 12345}) {
        AlignedMemory memory(bytes);
        CHECK(memory.size() == bytes);
        CHECK(reinterpret_cast<uintptr_t>(memory.data()) % 64 == 0);
        bool zero = true;
        for (size_t i = 0; i < bytes; ++i) zero = zero && memory.data()[i] == 0;
        CHECK(zero);
        memory.data()[bytes - 1] = 7;
        AlignedMemory moved(std::move(memory));
        CHECK(moved.data()[bytes - 1] == 7);
        memory = AlignedMemory(10);
        memory = std::move(moved);
        CHECK(memory.data()[bytes - 1] == 7);
    }
    CHECK(AlignedMemory(0).data() == nullptr);
}

/// Pages of the first 2 MB that are resident.
int64_t resident_pages(const AlignedMemory& memory, size_t page) {
    std::vector<unsigned char> resident((size_t{2} << 20) / page);
    if (mincore(memory.data(), resident.size() * page, resident.data()) != 0) return -1;
    return std::count_if(resident.begin(), resident.end(), [](unsigned char flags) { return (flags & 1) != 0; });
}

void check_small_pages_first() {
    const AlignedMemory memory(size_t{6} << 20, Pages::small_first);
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    CHECK(resident_pages(memory, page) == 0);
    memory.data()[0] = 1;
    memory.data()[3 * page] = 1;
    CHECK(resident_pages(memory, page) == 2);
}

void check_halves() {
    bool right = true;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const uint16_t half = static_cast<uint16_t>(bits);
        const int exponent = half >> 10 & 31;
        const int fraction = half & 1023;
        const float value = f16_to_f32(half);
        const float sign = half & 0x8000 ? -1.0f : 1.0f;
        if (exponent == 31) {
            right = right && !f16_is_finite(half) && (fraction == 0 ? std::isinf(value) : std::isnan(value));
            continue;
        }
        const double expected = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
        right = right && f16_is_finite(half) && value == sign * static_cast<float>(expected) &&
                std::signbit(value) == std::signbit(sign);
    }
    CHECK(right);
    CHECK(bf16_to_f32(f32_to_bf16(1.0f)) == 1.0f);
    CHECK(f32_to_bf16(float_from_bits(0x3f808000u)) == 0x3f80);  // a tie goes to the even neighbour
    CHECK(f32_to_bf16(float_from_bits(0x3f818000u)) == 0x3f82);
    CHECK(f32_to_bf16(float_from_bits(0x3f808001u)) == 0x3f81);
    CHECK(!bf16_is_finite(f32_to_bf16(std::numeric_limits<float>::max())));
    CHECK(std::isnan(bf16_to_f32(f32_to_bf16(float_from_bits(0x7f800001u)))));
}

void check_instruction_sets() {
    CHECK(isa_supported(Isa::scalar));
    CHECK(isa_supported(active_isa()));
    const Isa before = active_isa();
    for (const Isa isa : {Isa::scalar, Isa::neon, Isa::avx2, Isa::avx512}) {
        set_isa_for_test(isa, true);
        CHECK((active_isa() == isa) == isa_supported(isa));
        if (isa != Isa::avx512) CHECK(!has_avx512_bf16());
        set_isa_for_test(Isa::scalar, false);
    }
    set_isa_for_test(before, true);
    CHECK(std::string(isa_name(Isa::avx512)) == "avx512");
}

void check_workspace() {
    Workspace workspace;
    uint8_t* first = static_cast<uint8_t*>(workspace.get(2, 100));
    uint8_t* second = static_cast<uint8_t*>(workspace.get(0, 100));
    CHECK(first != second);
    CHECK(reinterpret_cast<uintptr_t>(first) % 64 == 0 && reinterpret_cast<uintptr_t>(second) % 64 == 0);
    first[99] = 1;
    CHECK(workspace.get(2, 50) == first && first[99] == 1);
    uint8_t* grown = static_cast<uint8_t*>(workspace.get(2, 100000));
    grown[99999] = 1;
    CHECK(workspace.get(2, 100000) == grown);
    CHECK(workspace.get(0, 0) == second);
    CHECK(workspace.get(5, 0) != nullptr);
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo::test;
    check_mapped_file();
    check_aligned_memory();
    check_small_pages_first();
    check_halves();
    check_instruction_sets();
    check_workspace();
    return finish("core_test");
}

// Matrices that are packed later: the same bits as packed ones give, however far packing has come.
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../core/isa.h"
#include "support/check.h"
#include "support/mapped_tensors.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

using Pools = std::vector<ThreadPool*>;

struct Shape {
    std::vector<int64_t> rows;
    /// In the type's units, one at least.
    int64_t units;
    size_t offset;
};

int64_t columns(const WeightCase& weight, const Shape& shape) {
    // bf16 in whole blocks, which can be read in place.
    return shape.units * (weight.type == WeightType::bf16 ? 256 : std::max<int64_t>(weight.column_unit, 32));
}

bool same_rows(const Matrix& a, const Matrix& b) {
    std::vector<float> x(static_cast<size_t>(a.cols()));
    std::vector<float> y(x.size());
    for (int64_t r = 0; r < a.rows(); ++r) {
        a.row(r, x.data());
        b.row(r, y.data());
        if (!same_bits(x, y)) return false;
    }
    return true;
}

/// Rows that take each way of multiplying, alone, in shares and gated, on one thread and on several.
void check_same(const Matrix& later, const Matrix& packed, const std::string& label, const Pools& pools) {
    CHECK_MESSAGE(same_rows(later, packed), label + ": a row differs");
    constexpr int64_t kMostRows = 70;
    const std::vector<float> x = activations(kMostRows * packed.cols(), 5);
    const std::vector<float> bias = activations(packed.rows(), 6);
    for (const int64_t m : {1, 2, 5, 9, 16, 17, 33, 70}) {
        if (quick() && (m == 2 || m == 16 || m == 33)) continue;
        const float* added = m % 2 == 0 ? bias.data() : nullptr;
        const std::vector<float> expected = product(packed, x, m, added, *pools.front());
        for (ThreadPool* pool : pools) {
            CHECK_MESSAGE(same_bits(product(later, x, m, added, *pool), expected),
                          label + ": m=" + std::to_string(m) + " differs on " + std::to_string(pool->size()) + " threads");
        }
        if (!packed.can_gate()) continue;
        CHECK_MESSAGE(same_bits(gated(later, x, m, 1 + m % 3, *pools.back()), gated(packed, x, m, 1, *pools.front())),
                      label + ": gated, m=" + std::to_string(m) + " differs");
    }
}

void check_stages(const WeightCase& weight, const Shape& shape, const Pools& pools) {
    std::unique_ptr<Matrix> later;
    std::unique_ptr<Matrix> packed;
    {
        const Tensors tensors(weight.type, columns(weight, shape), shape.rows, shape.offset, 41);
        later = Matrix::pack_later(tensors.in_file(), *pools.back());
        packed = Matrix::pack(tensors.in_memory(), *pools.back());
    }
    const std::string label = std::string(weight.label) + ", " + std::to_string(packed->rows()) + " rows";
    CHECK_MESSAGE(later->reads_files() && later->packed() == nullptr, label + ": packed at once");
    CHECK(later->bytes() == packed->bytes() && later->rows() == packed->rows() && later->cols() == packed->cols());
    CHECK(later->encoding() == packed->encoding());
    check_same(*later, *packed, label + ", unpacked", pools);
    // One piece, then half of the rest: no more than wanted, but at least one.
    CHECK(later->pack_more(1, *pools.back()) > 0);
    size_t left = packed->bytes();
    if (later->reads_files()) {
        check_same(*later, *packed, label + ", begun", pools);
        CHECK(later->packed() == nullptr);
        const size_t half = later->pack_more(left / 2, *pools.back());
        CHECK(half > 0 && half <= left / 2 + left / 4);
        check_same(*later, *packed, label + ", half packed", pools);
    }
    while (later->pack_more(left, *pools.front()) > 0) CHECK(later->packed() != nullptr || later->reads_files());
    CHECK(!later->reads_files() && later->pack_more(1, *pools.front()) == 0);
    CHECK_MESSAGE(later->packed() != nullptr && std::memcmp(later->packed(), packed->packed(), packed->bytes()) == 0,
                  label + ": packed bytes differ");
    check_same(*later, *packed, label + ", packed", pools);
}

bool can_wait(const WeightCase& weight) {
    if (weight.type == WeightType::bf16) return active_isa() == Isa::avx512;
    return weight.scale_bytes > 1;
}

void check_types(const Pools& pools) {
    // A stack whose panels cross from one source to the next; an odd number of panels; gates of whole and of split pairs.
    const std::vector<Shape> shapes = {{{64, 64}, 3, 0}, {{37}, 1, 4096 - 37 * 34 % 4096}, {{48, 48}, 2, 7}, {{160, 16, 80}, 1, 2}};
    for (const WeightCase& weight : kWeightCases) {
        if (!can_wait(weight)) continue;
        for (size_t i = 0; i < shapes.size(); ++i) {
            if (!quick() || (i + static_cast<size_t>(&weight - kWeightCases)) % 2 == 0) check_stages(weight, shapes[i], pools);
        }
        if (weight.type != WeightType::bf16) check_stages(weight, {{5, 20, 40}, 2, 1}, pools);
    }
}

/// A thread that sees packed bytes sees all of them.
void check_other_threads(ThreadPool& pool) {
    const Tensors tensors(WeightType::q8_0, 256, {512}, 0, 1);
    const std::unique_ptr<Matrix> packed = Matrix::pack(tensors.in_memory(), pool);
    const std::unique_ptr<Matrix> later = Matrix::pack_later(tensors.in_file(), pool);
    std::thread reader([&] {
        while (later->packed() == nullptr) std::this_thread::yield();
        CHECK(std::memcmp(later->packed(), packed->packed(), packed->bytes()) == 0);
    });
    while (later->pack_more(1, pool) > 0) {
    }
    reader.join();
}

/// What cannot be checked or multiplied where it lies is packed at once, with the same products.
void check_others(const Pools& pools) {
    for (const WeightCase& weight : kWeightCases) {
        if (weight.table != nullptr || weight.rounding > 0 || is_codebook(weight.type, weight.group)) continue;
        const Sample sample = make_sample(weight, 40, 2 * weight.column_unit, 3);
        const std::unique_ptr<Matrix> matrix = Matrix::pack_later({sample.source()}, *pools.back());
        CHECK_MESSAGE(!matrix->reads_files() && matrix->packed() != nullptr, std::string(weight.label) + " waits in memory");
        CHECK(matrix->pack_more(1, *pools.back()) == 0);
        if (can_wait(weight) || sample.scales.size() > 0) continue;
        const Tensors tensors(weight.type, 64 * weight.column_unit, {32}, 0, 1);
        CHECK_MESSAGE(!Matrix::pack_later(tensors.in_file(), *pools.back())->reads_files(), std::string(weight.label) + " waits");
    }
    Tensors ordered(WeightType::q4_0, 64, {32}, 0, 1);
    std::vector<MatrixSource> sources = ordered.in_file();
    for (int32_t c = 63; c >= 0; --c) sources.front().column_order.push_back(c);
    CHECK(!Matrix::pack_later(sources, *pools.back())->reads_files());
}

/// Where the scales of a type's last block stand, from the end of the row.
std::vector<int64_t> last_scales(const WeightCase& weight) {
    const int64_t block = source_row_bytes(weight.type, weight.column_unit);
    std::vector<int64_t> places;
    const bool at_end = weight.type == WeightType::q2_k || weight.type == WeightType::q3_k || weight.type == WeightType::q6_k;
    for (int64_t at = 0; at < weight.scale_bytes; at += 2) places.push_back(at_end ? at - weight.scale_bytes : at - block);
    return places;
}

void check_bad_weights(ThreadPool& pool) {
    for (const WeightCase& weight : kWeightCases) {
        if (!can_wait(weight) || weight.type == WeightType::bf16) continue;
        for (const int64_t at : last_scales(weight)) {
            for (const uint16_t bad : {uint16_t{0x7c00}, uint16_t{0xfc00}, uint16_t{0x7e01}}) {
                Tensors tensors(weight.type, 3 * weight.column_unit, {32, 21}, 10, 3);
                tensors.spoil(1, 20, at, bad);
                const std::string message = message_of([&] { Matrix::pack_later(tensors.in_file(), pool); });
                CHECK_MESSAGE(message.find("tensor tensor.1: row 20 holds a weight or a scale that is not finite") != std::string::npos,
                              std::string(weight.label) + ": " + message);
            }
            Tensors tensors(weight.type, 3 * weight.column_unit, {32, 21}, 10, 3);
            tensors.spoil(0, 0, at, 0x7bff);
            CHECK(Matrix::pack_later(tensors.in_file(), pool)->reads_files());
        }
    }
    const Tensors tensors(WeightType::q8_0, 64, {32, 32}, 0, 1);
    std::vector<MatrixSource> sources = tensors.in_file();
    sources[1].cols = 32;
    CHECK(message_of([&] { Matrix::pack_later(sources, pool); }).find("cannot be stacked") != std::string::npos);
    CHECK(!message_of([&] { Matrix::pack_later({}, pool); }).empty());
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    ThreadPool one(1);
    ThreadPool three(3);
    const Pools pools = {&one, &three};
    for (const Target& target : targets()) {
        set_isa_for_test(target.isa, target.bf16);
        check_types(pools);
        check_others(pools);
        check_bad_weights(three);
    }
    check_other_threads(three);
    return finish("deferred_test");
}

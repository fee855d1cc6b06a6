// bf16 matrices read where they lie in a file: the same bits as packed ones give, at any number of rows, threads and sources.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../matrix/matrix.h"
#include "support/check.h"
#include "support/mapped_tensors.h"
#include "support/targets.h"

namespace octavo::test {

namespace {

struct Shape {
    int64_t cols;
    std::vector<int64_t> rows;
    size_t offset;
    int64_t most_rows;
};

void check_products(const Shape& shape, const std::vector<ThreadPool*>& pools) {
    const std::string label = std::to_string(shape.rows.size()) + " sources of " + std::to_string(shape.cols) + " columns";
    std::unique_ptr<Matrix> matrix;
    std::unique_ptr<Matrix> packed;
    std::vector<float> weights;
    {
        const Tensors tensors(WeightType::bf16, shape.cols, shape.rows, shape.offset, 41);
        matrix = Matrix::in_place_or_packed(tensors.in_file(), *pools.back());
        packed = Matrix::pack(tensors.in_memory(), *pools.back());
        for (const Sample& sample : tensors.samples()) weights.insert(weights.end(), sample.weights.begin(), sample.weights.end());
    }
    CHECK_MESSAGE(matrix->reads_files() && !packed->reads_files(), label + ": not read in place");
    CHECK(matrix->packed() == nullptr && matrix->rows() == packed->rows() && matrix->cols() == packed->cols());
    CHECK(matrix->bytes() == weights.size() * 2 && matrix->encoding() == packed->encoding());
    std::vector<float> rows(weights.size());
    for (int64_t r = 0; r < matrix->rows(); ++r) matrix->row(r, rows.data() + r * shape.cols);
    CHECK_MESSAGE(same_bits(rows, weights), label + ": a row differs");

    const std::vector<float> x = activations(shape.most_rows * shape.cols, 5);
    const std::vector<float> bias = activations(matrix->rows(), 6);
    size_t turn = 0;
    for (int64_t m = 1; m <= shape.most_rows; m += m < 20 ? 1 : m < 70 ? 17 : 221) {
        ThreadPool& pool = *pools[turn++ % pools.size()];
        const float* added = m % 2 == 0 ? bias.data() : nullptr;
        CHECK_MESSAGE(same_bits(product(*matrix, x, m, added, pool), product(*packed, x, m, added, *pools.front())),
                      label + ": m=" + std::to_string(m) + " differs from packed on " + std::to_string(pool.size()) + " threads");
    }
    CHECK(matrix->can_gate() == packed->can_gate());
    if (!matrix->can_gate()) return;
    for (const int64_t m : {int64_t{1}, int64_t{4}, int64_t{19}}) {
        if (m > shape.most_rows) continue;
        CHECK_MESSAGE(same_bits(gated(*matrix, x, m, m, *pools.back()), gated(*packed, x, m, 1, *pools.front())),
                      label + ": gated product of " + std::to_string(m) + " differs");
    }
}

void check_bad_weights(ThreadPool& pool) {
    for (const uint16_t bad : {uint16_t{0x7fc0}, uint16_t{0x7f80}, uint16_t{0xff80}, uint16_t{0xffff}}) {
        Tensors tensors(WeightType::bf16, 512, {32, 21}, 10, 3);
        tensors.spoil(1, 20, -2, bad);
        const std::string message = message_of([&] { Matrix::in_place_or_packed(tensors.in_file(), pool); });
        CHECK_MESSAGE(message.find("tensor tensor.1: row 20 holds a weight") != std::string::npos, message);
    }
    Tensors tensors(WeightType::bf16, 512, {32, 21}, 10, 3);
    tensors.spoil(0, 31, -2, 0x7f7f);
    CHECK(Matrix::in_place_or_packed(tensors.in_file(), pool)->reads_files());
    std::vector<MatrixSource> sources = tensors.in_file();
    sources[1].cols = 256;
    CHECK(message_of([&] { Matrix::in_place_or_packed(sources, pool); }).find("cannot be stacked") != std::string::npos);
}

/// What cannot be read in place is packed, with the same products.
void check_others(ThreadPool& pool) {
    const auto is_packed = [&](const std::vector<MatrixSource>& sources) {
        return !Matrix::in_place_or_packed(sources, pool)->reads_files();
    };
    CHECK(is_packed(Tensors(WeightType::bf16, 384, {32}, 0, 1).in_file()));
    CHECK(is_packed(Tensors(WeightType::bf16, 255, {32}, 0, 1).in_file()));
    CHECK(is_packed(Tensors(WeightType::bf16, 512, {17, 32}, 0, 1).in_file()));
    const Tensors tensors(WeightType::bf16, 512, {32, 16}, 0, 1);
    CHECK(is_packed(tensors.in_memory()));
    std::vector<MatrixSource> mixed = tensors.in_file();
    mixed[1] = tensors.in_memory()[1];
    CHECK(is_packed(mixed));
    std::vector<MatrixSource> halves = tensors.in_file();
    for (MatrixSource& source : halves) source.type = WeightType::f16;
    CHECK(is_packed(halves));
    for (const Target& target : all_targets()) {
        set_isa_for_test(target.isa, target.bf16);
        CHECK(is_packed(tensors.in_file()) == (target.isa != Isa::avx512));
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    ThreadPool one(1);
    ThreadPool two(2);
    ThreadPool three(3);
    const std::vector<ThreadPool*> pools = {&one, &two, &three};
    for (const Target& target : targets()) {
        if (target.isa != Isa::avx512) continue;
        set_isa_for_test(target.isa, target.bf16);
        // The tail of the third shape ends with the file, which ends with a page: nothing beyond may be read.
        const std::vector<Shape> shapes = {{256, {16}, 0, 70},           {256, {1}, 2, 30},       {512, {37}, 4096 - 37 * 1024 % 4096, 70},
                                           {768, {32, 16, 53}, 8, 70},   {1280, {64}, 37, 30},    {2048, {48, 80, 32}, 32, 512},
                                           {4352, {64, 32}, 1, 30},      {4864, {37}, 72, 30},    {8192, {32, 32}, 64, 20}};
        for (const Shape& shape : shapes) check_products(shape, pools);
        check_bad_weights(three);
    }
    check_others(two);
    return finish("in_place_test");
}

// Packed matrices and linear kernels: every weight type on every instruction set that this machine has.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "../core/isa.h"
#include "../matrix/matrix.h"
#include "support/check.h"
#include "support/products.h"
#include "support/reference.h"
#include "support/weight_cases.h"
#include "support/targets.h"
#include "support/temporary_file.h"

namespace octavo::test {

namespace {

struct Shape {
    int64_t rows;
    /// In units of the type's columns.
    int64_t column_units;
};

void check_values(const Sample& sample, const Matrix& matrix, ThreadPool& pool, const std::string& label) {
    Workspace workspace;
    const int64_t ldx = sample.cols + 3;
    const int64_t ldy = sample.rows + 5;
    std::vector<float> bias(static_cast<size_t>(sample.rows));
    Random random(7);
    for (float& value : bias) value = random.uniform();
    for (const int64_t m : {int64_t{1}, int64_t{3}, int64_t{19}}) {
        const std::vector<float> x = activations(m * ldx, 11);
        const Reference reference = reference_linear(sample, x.data(), ldx, m);
        constexpr float kUntouched = -12345.0f;
        std::vector<float> y(static_cast<size_t>(m * ldy), kUntouched);
        const bool biased = m != 3;
        matrix.linear(x.data(), ldx, m, y.data(), ldy, biased ? bias.data() : nullptr, workspace, pool);
        double worst = 0;
        bool padding_untouched = true;
        for (int64_t row = 0; row < m; ++row) {
            for (int64_t r = 0; r < ldy; ++r) {
                const float got = y[static_cast<size_t>(row * ldy + r)];
                if (r >= sample.rows) {
                    padding_untouched = padding_untouched && got == kUntouched;
                    continue;
                }
                const size_t at = static_cast<size_t>(row * sample.rows + r);
                const double expected = reference.y[at] + (biased ? static_cast<double>(bias[static_cast<size_t>(r)]) : 0.0);
                const double error = std::fabs(got - expected) / (reference.magnitude[at] + 1.0);
                if (!(error <= worst)) worst = error;
            }
        }
        CHECK_MESSAGE(worst <= kTolerance + sample.rounding, label + " m=" + std::to_string(m) + ": error " + std::to_string(worst * 1e6) + "e-6");
        CHECK_MESSAGE(padding_untouched, label + ": wrote beyond its columns");
    }
    matrix.linear(nullptr, ldx, 0, nullptr, ldy, nullptr, workspace, pool);
}

void check_rows(const Sample& sample, const Matrix& matrix, const std::string& label) {
    std::vector<float> row(static_cast<size_t>(sample.cols));
    bool equal = true;
    for (int64_t r = 0; r < sample.rows; ++r) {
        matrix.row(r, row.data());
        equal = equal && same_bits(row.data(), sample.weights.data() + r * sample.cols, sample.cols);
    }
    CHECK_MESSAGE(equal, label + ": a dequantised row differs");
}

/// Rows r and r + 32 share their scales and zero points, of which there is one for every column (HQQ along columns).
void check_shared_scales(ThreadPool& pool, const std::string& label) {
    const WeightCase weight{WeightType::table4, 1, true, "", 2, 0, kPlainValues, kBf16Rounding};
    Sample sample = make_sample(weight, 96, 66, 71);
    const size_t shared = 32 * 66;
    for (size_t i = 0; i < sample.weights.size(); ++i) {
        float scale;
        float zero;
        std::memcpy(&scale, sample.scales.data() + 4 * (i % shared), sizeof scale);
        std::memcpy(&zero, sample.zeros.data() + 4 * (i % shared), sizeof zero);
        const float code = static_cast<float>(sample.values[i / 2] >> (i % 2 * 4) & 15);
        sample.weights[i] = scale * (code - zero);
    }
    MatrixSource source = sample.source();
    source.scale_rows = 32;
    const std::unique_ptr<Matrix> matrix = Matrix::pack({source}, pool);
    check_rows(sample, *matrix, label);
    check_values(sample, *matrix, pool, label);
    CHECK_MESSAGE(matrix->bytes() < sample.values.size() + 9 * shared, label + ": shared scales are held more than once");
}

/// Any number of rows, threads and any neighbours leave a row's bits alone.
void check_schedule_independence(const Sample& sample, const Matrix& matrix, const std::vector<ThreadPool*>& pools,
                                 const std::string& label) {
    constexpr int64_t kRows = kManyRows;
    const int64_t rows = matrix.rows();
    const std::vector<float> x = activations(kRows * sample.cols, 23);
    std::vector<float> alone(static_cast<size_t>(kRows * rows));
    Workspace workspace;
    for (int64_t i = 0; i < kRows; ++i) {
        matrix.linear(x.data() + i * sample.cols, sample.cols, 1, alone.data() + i * rows, rows, nullptr, workspace,
                      *pools.front());
    }
    Random random(31);
    const auto compare = [&](int64_t first, int64_t m, ThreadPool& pool) {
        std::vector<float> y(static_cast<size_t>(m * rows));
        matrix.linear(x.data() + first * sample.cols, sample.cols, m, y.data(), rows, nullptr, workspace, pool);
        CHECK_MESSAGE(same_bits(y.data(), alone.data() + first * rows, m * rows),
                      label + ": m=" + std::to_string(m) + " on " + std::to_string(pool.size()) +
                          " threads differs from single rows");
    };
    for (int64_t m = 1; m <= 17; ++m) compare(random.below(40), m, *pools[static_cast<size_t>(m) % pools.size()]);
    for (ThreadPool* pool : pools) {
        compare(0, kRows, *pool);
        const int64_t m = 18 + random.below(40);
        compare(random.below(static_cast<int>(kRows - m)), m, *pool);
    }
}

void check_type(const WeightCase& weight, const std::vector<Target>& isas, const std::vector<ThreadPool*>& pools) {
    std::vector<Shape> shapes = {{1, 1}, {16, 2}, {37, 3}, {100, weight.column_unit > 64 ? 4 : 20}};
    if (weight.column_unit <= 2) shapes = {{1, 1}, {5, 33}, {37, 257}, {100, 600}, {16, 256}};
    if (!quick()) shapes.push_back({272, weight.column_unit <= 2 ? 1027 : 2080 / weight.column_unit});
    uint64_t seed = 100;
    for (const Shape& shape : shapes) {
        const Sample sample =
            make_sample(weight, shape.rows, shape.column_units * weight.column_unit, ++seed);
        for (const Target& target : isas) {
            set_isa_for_test(target.isa, target.bf16);
            const std::string label = std::string(weight.label) + " " + std::to_string(sample.rows) + "x" +
                                      std::to_string(sample.cols) + " " + target.name();
            const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, *pools.back());
            CHECK(matrix->rows() == sample.rows && matrix->cols() == sample.cols);
            check_values(sample, *matrix, *pools[1], label);
            check_rows(sample, *matrix, label);
            check_schedule_independence(sample, *matrix, pools, label);
        }
    }
}

void check_packed_size(const WeightCase& weight, ThreadPool& pool) {
    const Sample sample = make_sample(weight, 64, 1024, 5);
    const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, pool);
    // Narrow groups keep zero points beside their scales, whether they have any or not.
    const size_t none = is_codebook(weight.type, weight.group) && weight.group < 32 && !weight.zeros ? sample.scales.size() : 0;
    CHECK_MESSAGE(static_cast<double>(matrix->bytes()) <= 1.04 * static_cast<double>(sample.source_bytes() + none),
                  std::string(weight.label) + ": packed form takes " + std::to_string(matrix->bytes()) + " bytes for " +
                      std::to_string(sample.source_bytes()));
}

/// Unaligned sources stacked along rows equal the same rows packed apart.
void check_stacking(const WeightCase& weight, ThreadPool& pool) {
    const int64_t cols = 2 * weight.column_unit * (weight.column_unit <= 2 ? 33 : 1);
    Sample parts[3];
    std::vector<MatrixSource> sources;
    std::vector<std::vector<uint8_t>> shifted;
    int64_t rows = 0;
    for (int i = 0; i < 3; ++i) {
        parts[i] = make_sample(weight, 5 + 14 * i, cols, 50 + static_cast<uint64_t>(i));
        rows += parts[i].rows;
        shifted.emplace_back(parts[i].values.size() + 1);
        std::memcpy(shifted.back().data() + 1, parts[i].values.data(), parts[i].values.size());
        sources.push_back(parts[i].source());
    }
    for (int i = 0; i < 3; ++i) sources[static_cast<size_t>(i)].values = shifted[static_cast<size_t>(i)].data() + 1;
    const std::unique_ptr<Matrix> stacked = Matrix::pack(sources, pool);
    CHECK(stacked->rows() == rows);
    const std::vector<float> x = activations(4 * cols, 3);
    std::vector<float> y(static_cast<size_t>(4 * rows));
    Workspace workspace;
    stacked->linear(x.data(), cols, 4, y.data(), rows, nullptr, workspace, pool);
    int64_t first = 0;
    for (const Sample& part : parts) {
        const std::unique_ptr<Matrix> apart = Matrix::pack({part.source()}, pool);
        std::vector<float> expected(static_cast<size_t>(4 * rows));
        apart->linear(x.data(), cols, 4, expected.data() + first, rows, nullptr, workspace, pool);
        for (int64_t row = 0; row < 4; ++row) {
            CHECK_MESSAGE(same_bits(y.data() + row * rows + first, expected.data() + row * rows + first, part.rows),
                          std::string(weight.label) + ": stacked rows differ");
        }
        first += part.rows;
    }
}

/// Pages of a mapped file are given back chunk by chunk while the rest is packed: nothing may be lost or read twice.
void check_mapped(ThreadPool& pool) {
    const Sample sample = make_sample(WeightType::q8_0, 1033, 2048, 0, false, 91);
    const std::string prefix(37, '!');
    const TemporaryFile bytes(prefix + std::string(sample.values.begin(), sample.values.end()));
    const auto file = std::make_shared<const MappedFile>(bytes.path());
    MatrixSource source = sample.source();
    source.values = file->data() + prefix.size();
    source.file = file;
    const std::unique_ptr<Matrix> matrix = Matrix::pack({source}, pool);
    check_rows(sample, *matrix, "mapped file");
    CHECK(std::memcmp(source.values, sample.values.data(), sample.values.size()) == 0);
}

/// Gating inside the product equals gating its result; rows encoded once serve a second matrix of the same form.
void check_gate(const WeightCase& weight, const std::vector<ThreadPool*>& pools, const std::string& label) {
    const int64_t cols = 2 * weight.column_unit * (weight.column_unit <= 2 ? 150 : 1);
    const auto activate = [](const float* gate, const float* up, float* out, int64_t count) {
        for (int64_t i = 0; i < count; ++i) out[i] = std::fabs(gate[i]) * up[i];
    };
    const GateFunction gate(activate);
    // The last half is wide enough for threads to take several pairs at a time, and then ends with a single panel.
    for (const int64_t half : {int64_t{16}, int64_t{80}, int64_t{560}}) {
        const Sample sample = make_sample(weight, 2 * half, cols, 88);
        const Sample other = make_sample(weight, 24, cols, 89);
        const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, *pools.back());
        const std::unique_ptr<Matrix> second = Matrix::pack({other.source()}, *pools.back());
        CHECK(matrix->can_gate() && !second->can_gate());
        CHECK(matrix->encoding() == second->encoding());
        const std::vector<float> bias = activations(2 * half, 5);
        for (const int64_t m : {int64_t{1}, int64_t{7}, kManyRows}) {
            ThreadPool& pool = *pools[static_cast<size_t>(m) % pools.size()];
            Workspace workspace;
            const std::vector<float> x = activations(m * cols, 6);
            std::vector<float> plain(static_cast<size_t>(2 * half * m));
            matrix->linear(x.data(), cols, m, plain.data(), 2 * half, bias.data(), workspace, pool);
            std::vector<float> second_alone(static_cast<size_t>(24 * m));
            second->linear(x.data(), cols, m, second_alone.data(), 24, nullptr, workspace, pool);

            void* rows = workspace.get(Workspace::kRowsSlot, matrix->encoded_bytes(m));
            for (int64_t row = m - 1; row >= 0; --row) matrix->encode(x.data() + row * cols, row, m, rows);
            const int64_t ldy = half + 3;
            constexpr float kUntouched = -12345.0f;
            std::vector<float> gated(static_cast<size_t>(ldy * m), kUntouched);
            matrix->multiply(rows, m, {gated.data(), ldy, bias.data(), &gate}, workspace, pool);
            std::vector<float> second_shared(second_alone.size());
            second->multiply(rows, m, {second_shared.data(), 24, nullptr, nullptr}, workspace, pool);
            CHECK_MESSAGE(same_bits(second_shared.data(), second_alone.data(), 24 * m), label + ": shared rows differ");
            bool equal = true;
            for (int64_t row = 0; row < m; ++row) {
                const float* halves = plain.data() + row * 2 * half;
                std::vector<float> expected(static_cast<size_t>(ldy), kUntouched);
                activate(halves, halves + half, expected.data(), half);
                equal = equal && same_bits(gated.data() + row * ldy, expected.data(), ldy);
            }
            CHECK_MESSAGE(equal, label + ": gated products differ, m=" + std::to_string(m));
        }
    }
}

/// Sums of integer products are exact, so instruction sets differ in the last bits of the float combination alone.
void check_agreement(const WeightCase& weight, const std::vector<Target>& isas, ThreadPool& pool) {
    const int64_t cols = 512;
    const Sample sample = make_sample(weight, 48, cols, 61);
    const std::vector<float> x = activations(9 * cols, 62);
    const Reference scale = reference_linear(sample, x.data(), cols, 9);
    std::vector<float> first;
    Workspace workspace;
    for (const Target& target : isas) {
        set_isa_for_test(target.isa, target.bf16);
        const std::unique_ptr<Matrix> matrix = Matrix::pack({sample.source()}, pool);
        std::vector<float> y(9 * 48);
        matrix->linear(x.data(), cols, 9, y.data(), 48, nullptr, workspace, pool);
        if (first.empty()) first = y;
        bool close = true;
        for (size_t i = 0; i < y.size(); ++i) close = close && std::fabs(y[i] - first[i]) <= 1e-6 * (scale.magnitude[i] + 1);
        CHECK_MESSAGE(close, std::string(weight.label) + " " + target.name() + ": differs from scalar");
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    using namespace octavo;
    using namespace octavo::test;
    const std::vector<Target> isas = targets();
    for (const Target& target : isas) std::fprintf(stderr, "instruction set: %s\n", target.name().c_str());
    ThreadPool one(1);
    ThreadPool two(2);
    ThreadPool three(3);
    const std::vector<ThreadPool*> pools = {&one, &two, &three};
    for (const WeightCase& weight : kWeightCases) {
        check_type(weight, isas, pools);
        check_agreement(weight, all_targets(), two);
        for (const Target& target : isas) {
            set_isa_for_test(target.isa, target.bf16);
            check_stacking(weight, two);
            check_gate(weight, pools, std::string(weight.label) + " " + target.name());
        }
        check_packed_size(weight, two);
    }
    for (const Target& target : isas) {
        set_isa_for_test(target.isa, target.bf16);
        check_shared_scales(two, "shared scales " + target.name());
    }
    check_mapped(three);
    return finish("matrix_test");
}

#pragma once
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../../matrix/source.h"
#include "weight_cases.h"
#include "temporary_file.h"

namespace octavo::test {

/// Tensors one after the other in a file, the first at `offset`, the last up to the file's end.
class Tensors {
public:
    Tensors(WeightType type, int64_t cols, const std::vector<int64_t>& rows, size_t offset, uint64_t seed) {
        std::string bytes(offset, '!');
        for (const int64_t count : rows) {
            samples_.push_back(make_sample(type, count, cols, 0, false, seed++));
            samples_.back().name = "tensor." + std::to_string(samples_.size() - 1);
            bytes.append(samples_.back().values.begin(), samples_.back().values.end());
        }
        write_file(bytes);
        size_t at = offset;
        for (const Sample& sample : samples_) {
            sources_.push_back(sample.source());
            sources_.back().values = file_->data() + at;
            sources_.back().file = file_;
            at += sample.values.size();
        }
    }

    /// Two bytes of a row are replaced in the file; `at` counts from the row's end when it is negative.
    void spoil(size_t tensor, int64_t row, int64_t at, uint16_t value) {
        std::string bytes(reinterpret_cast<const char*>(file_->data()), file_->size());
        const MatrixSource& source = sources_[tensor];
        const int64_t row_bytes = source_row_bytes(source.type, source.cols);
        const int64_t place = source.values - file_->data() + row * row_bytes + (at < 0 ? row_bytes : 0) + at;
        std::memcpy(bytes.data() + place, &value, sizeof value);
        const std::shared_ptr<const MappedFile> old = file_;
        write_file(bytes);
        for (MatrixSource& moved : sources_) {
            moved.values = file_->data() + (moved.values - old->data());
            moved.file = file_;
        }
    }

    const std::vector<MatrixSource>& in_file() const { return sources_; }
    std::vector<MatrixSource> in_memory() const {
        std::vector<MatrixSource> sources;
        for (const Sample& sample : samples_) sources.push_back(sample.source());
        return sources;
    }
    const std::vector<Sample>& samples() const { return samples_; }

private:
    void write_file(const std::string& bytes) {
        file_ = std::make_shared<const MappedFile>(TemporaryFile(bytes).path());
    }

    std::vector<Sample> samples_;
    std::vector<MatrixSource> sources_;
    std::shared_ptr<const MappedFile> file_;
};

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Rows and columns of y beyond the matrix's must be left alone.
inline std::vector<float> product(const Matrix& matrix, const std::vector<float>& x, int64_t m, const float* bias, ThreadPool& pool) {
    Workspace workspace;
    const int64_t ldy = matrix.rows() + 3;
    std::vector<float> y(static_cast<size_t>(m * ldy), -12345.0f);
    matrix.linear(x.data(), matrix.cols(), m, y.data(), ldy, bias, workspace, pool);
    return y;
}

/// In as many shares as there are threads.
inline std::vector<float> gated(const Matrix& matrix, const std::vector<float>& x, int64_t m, int64_t shares, ThreadPool& pool) {
    const auto activate = [](const float* gate, const float* up, float* out, int64_t count) {
        for (int64_t i = 0; i < count; ++i) out[i] = std::fabs(gate[i]) * up[i];
    };
    const GateFunction gate(activate);
    Workspace workspace;
    std::vector<uint8_t> rows(matrix.encoded_bytes(m) + 64);
    void* encoded = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(rows.data()) + 63) / 64 * 64);
    matrix.encode_all(x.data(), matrix.cols(), m, encoded, pool);
    const int64_t width = matrix.rows() / 2;
    std::vector<float> y(static_cast<size_t>(m * width));
    for (int64_t share = 0; share < shares; ++share) {
        matrix.multiply(encoded, m, {y.data(), width, nullptr, &gate, {share, shares}}, workspace, pool);
    }
    return y;
}

}  // namespace octavo::test

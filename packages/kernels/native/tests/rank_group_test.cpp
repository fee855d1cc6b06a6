// Ranks on threads of their own: columns in parts and from the first, rows in several rounds, and a rank that fails.
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../program/rank_group.h"
#include "support/check.h"

namespace octavo::test {

namespace {

constexpr int64_t num_rows = 70;
/// So wide that not all rows fit into an area.
constexpr int64_t width = 30011;

float value(int64_t round, int64_t row, int64_t column) { return static_cast<float>((round * 131 + row * 7 + column) % 8191); }

struct Seen {
    int64_t wrong = 0;
    int64_t bytes = 0;
    bool failed = false;
};

/// What one rank sees of several exchanges; ranks of `leaves` go after the first.
Seen run_rank(const std::shared_ptr<RankGroup>& group, int64_t index, ExchangeKind kind, bool leaves) {
    ThreadPool pool(2);
    Rank rank(group, index);
    std::vector<float> memory(static_cast<size_t>(num_rows * width));
    const Rows rows{memory.data(), width};
    Seen seen;
    try {
        rank.begin_step();
        for (int64_t round = 0; round < 3; round++) {
            if (leaves && round == 1) {
                rank.fail();
                return seen;
            }
            const RankPart own = kind == ExchangeKind::first ? RankPart{0, rank.is_first() ? width : 0} : rank.part_of(width);
            for (int64_t row = 0; row < num_rows; row++) {
                for (int64_t i = own.first; i < own.first + own.width; i++) rows.row(row)[i] = value(round, row, i);
            }
            rank.exchange(rows, num_rows, width, kind, pool);
            if (kind == ExchangeKind::parts_to_first && !rank.is_first()) continue;
            for (int64_t row = 0; row < num_rows; row++) {
                for (int64_t i = 0; i < width; i++) seen.wrong += rows.row(row)[i] != value(round, row, i);
            }
        }
    } catch (const std::runtime_error&) {
        seen.failed = true;
    }
    seen.bytes = rank.bytes_received();
    return seen;
}

std::vector<Seen> run_ranks(const std::shared_ptr<RankGroup>& group, ExchangeKind kind, int64_t leaving = -1) {
    std::vector<Seen> seen(static_cast<size_t>(group->size()));
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < group->size(); i++) {
        threads.emplace_back([&, i] { seen[static_cast<size_t>(i)] = run_rank(group, i, kind, i == leaving); });
    }
    for (std::thread& thread : threads) thread.join();
    return seen;
}

void test_kinds() {
    for (const int64_t size : {2, 3}) {
        const auto group = std::make_shared<RankGroup>(size, width);
        for (const ExchangeKind kind : {ExchangeKind::parts, ExchangeKind::parts_to_first, ExchangeKind::first}) {
            for (const Seen& seen : run_ranks(group, kind)) CHECK(seen.wrong == 0 && !seen.failed);
        }
    }
}

void test_failure() {
    const auto group = std::make_shared<RankGroup>(3, width);
    const std::vector<Seen> seen = run_ranks(group, ExchangeKind::parts, 1);
    CHECK(seen[0].failed && seen[2].failed);
    group->reset();
    for (const Seen& again : run_ranks(group, ExchangeKind::parts)) {
        CHECK(again.wrong == 0 && !again.failed);
        CHECK(again.bytes > 0);
    }
}

}  // namespace

}  // namespace octavo::test

int main() {
    octavo::test::test_kinds();
    octavo::test::test_failure();
    return octavo::test::finish("rank_group_test");
}

#include "layout/walk.hpp"

#include <utility>

namespace hocket::layout {
namespace {

// True for nodes that a walk steps through without going deeper: their entries are runs.
bool is_leaf(const TypeNode& node) {
  return node.kind == NodeKind::run || node.kind == NodeKind::blocks ||
         (node.kind == NodeKind::vector && node.child->kind == NodeKind::run);
}

}  // namespace

Walk::Walk(Placed placed, Extent data) : root_(std::move(placed)), end_(data.end) { seek(data.first); }

void Walk::seek(std::int64_t data) {
  data_ = data;
  if (left() > 0) {
    depth_ = 0;
    descend(root_.node.get(), root_.at, data);
  }
}

void Walk::descend(const TypeNode* node, std::int64_t at, std::int64_t data) {
  while (!is_leaf(*node)) {
    const std::int64_t i = data == 0 ? 0 : node->entry_of(data);
    frames_[static_cast<std::size_t>(depth_++)] = {node, at, i};
    data -= node->data_before(i);
    at += node->address(i);
    node = &node->part(i);
  }
  leaf_ = node;
  leaf_at_ = at;
  i_ = node->kind == NodeKind::run || data == 0 ? 0 : node->entry_of(data);
  into_ = node->kind == NodeKind::run ? data : data - node->data_before(i_);
}

// Goes on by `blocks` blocks. At the leaf's end it moves to the next entry of the closest level that has one.
void Walk::advance(std::int64_t blocks) {
  into_ = 0;
  i_ += blocks;
  if (i_ < leaf_->count) return;
  while (depth_ > 0) {
    Frame& frame = frames_[static_cast<std::size_t>(depth_ - 1)];
    if (++frame.i < frame.node->count) {
      // The common case of a vector of one leaf needs no descent: only the address changes.
      if (frame.node->kind == NodeKind::vector && frame.node->child.get() == leaf_) {
        leaf_at_ = frame.at + frame.i * frame.node->stride;
        i_ = 0;
        return;
      }
      return descend(&frame.node->part(frame.i), frame.at + frame.node->address(frame.i), 0);
    }
    --depth_;
  }
}

Strip Walk::next(std::int64_t most) {
  most = std::min(most, left());
  const bool run = leaf_->kind == NodeKind::run;
  const bool vector = leaf_->kind == NodeKind::vector;
  const std::int64_t length = run ? leaf_->size : vector ? leaf_->child->size : leaf_->length(i_);
  Strip strip{data_, leaf_at_ + (run ? 0 : leaf_->address(i_)) + into_, length - into_, leaf_->stride, 1};
  if (vector && into_ == 0 && most >= length) {
    // The division below takes as long as everything else here, so it is avoided if the whole strip fits.
    const std::int64_t blocks = leaf_->count - i_;
    strip.count = most >= blocks * length ? blocks : most / length;
  }
  if (strip.length > most) {
    strip.length = most;
    into_ += most;
  } else {
    advance(strip.count);
  }
  data_ += strip.bytes();
  return strip;
}

}  // namespace hocket::layout

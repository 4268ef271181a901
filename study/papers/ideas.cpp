#include "study/papers/ideas.h"

namespace ungrain::study {
namespace {

// clang-format off
constexpr Idea all_ideas[] = {
    {"bilateral", "2 constant memory", "1 naive", "spatial weights in constant memory, which all lanes read alike"},
    {"bilateral", "3 shared memory", "2 constant memory", "the image in shared memory"},
    {"bilateral", "4 padded shared", "3 shared memory", "rows of shared memory padded against bank conflicts"},
    {"bilateral", "5 1xN tiling", "3 shared memory", "several squares of pixels a block (1xN tiling)"},
    {"bilateral", "7 rolling tiling", "6 tiling, padded", "a small tile that rolls in place of a wide one"},
    {"bilateral", "asynchronous copies", "7 rolling tiling", "asynchronous copies of the next tile"},
    {"bilateral", "8 unrolled", "6 tiling, padded", "the tiling factor known to the compiler"},
    {"bilateral", "unrolled radius", "4 padded shared", "the radius known to the compiler"},
    {"bilateral", "tables in global memory", "no tables", "Gaussians from tables in global memory in place of exponentials"},
    {"bilateral", "tables in shared memory", "tables in global memory", "those tables in shared memory"},
    {"bilateral", "tables in constant memory", "tables in global memory", "those tables in constant memory, where lanes read different entries"},
    {"bilateral", "bytes and a range table", "3 shared memory", "8-bit pixels kept as bytes, range weights from a table"},
    {"bilateral", "fast exponential", "4 padded shared", "one approximate exponential for both Gaussians"},
    {"bilateral", "texture memory", "2 constant memory", "the image through the texture units"},
    {"bilateral", "pair-symmetric weights", "3 shared memory", "each weight computed once for both its pixels"},
    {"bilateral", "dynamic parallelism", "2 constant memory", "kernels launched by kernels (dynamic parallelism)"},
    {"bilateral", "ungrain", "1 naive", "everything together: the product's kernel"},
    {"adaptive-bilateral", "shared image, table in global memory", "naive", "image in shared memory and a table of spatial weights"},
    {"adaptive-bilateral", "shared image, table in shared memory", "shared image, table in global memory", "that table in shared memory"},
    {"adaptive-bilateral", "ungrain", "naive", "everything together: the product's kernel"},
    {"nlm", "one block a pixel", "naive", "[004]'s one block a pixel, one thread of it at work"},
    {"nlm", "one block a pixel, a thread a shift", "one block a pixel", "none of that block's threads idle"},
    {"nlm", "shared memory", "naive", "the image in shared memory"},
    {"nlm", "own patch in registers", "shared memory", "a pixel's own patch in registers"},
    {"nlm", "separable sums", "shared memory", "patches' sums in two stages, shared by neighbours"},
    {"nlm", "symmetric weights", "separable sums", "each weight for both its pixels"},
    {"nlm", "register blocking", "separable sums", "several rows a thread, sums running on in registers"},
    {"nlm", "sums between lanes", "register blocking", "sums along rows by shuffles between lanes"},
    {"nlm", "fast exponential", "sums between lanes", "the approximate exponential"},
    {"nlm", "ungrain", "naive", "everything together: the product's kernel"},
    {"nlm-bilateral", "tables in global memory", "naive", "Gaussians from tables in global memory"},
    {"nlm-bilateral", "tables in shared memory", "tables in global memory", "those tables in shared memory"},
    {"nlm-bilateral", "shared image, tables in shared memory", "tables in shared memory", "the image in shared memory too"},
    {"nlm-bilateral", "ungrain", "naive", "everything together: the product's kernel"},
    {"nlm-whole-image", "v2 shared memory", "v1 global memory", "patches in shared memory"},
    {"nlm-whole-image", "own patch in registers", "v2 shared memory", "the pixel's own patch in registers"},
    {"nlm-whole-image", "overlapping patches", "v2 shared memory", "pixels in shared memory in place of patches, which overlap"},
    {"nlm-whole-image", "ungrain", "v1 global memory", "everything together, in single precision"},
    {"nlm-whole-image", "ungrain, halves", "ungrain", "patches as 16-bit numbers on tensor cores"},
    {"nlm-bilateral-whole-image", "table in global memory", "naive", "range weights from a table in global memory"},
    {"nlm-bilateral-whole-image", "table in shared memory", "table in global memory", "that table in shared memory"},
    {"nlm-bilateral-whole-image", "ungrain", "naive", "everything together, in single precision"},
    {"nlm-bilateral-whole-image", "ungrain, halves", "ungrain", "patches as 16-bit numbers on tensor cores"},
    {"bm3d", "2 batches", "1 own distances", "distances of columns shared by a warp"},
    {"bm3d", "3 table of roots", "2 batches", "roots of unity from a table"},
    {"bm3d", "4 four pixels at once", "3 table of roots", "four bytes compared in one instruction"},
    {"bm3d", "5 DCT for DFT", "3 table of roots", "cosine in place of Fourier transforms, by kernels of ours in place of cuFFT"},
    {"bm3d", "6 shared distances, 2 rows", "5 DCT for DFT", "squared differences shared by two rows of reference patches"},
    {"bm3d", "6 shared distances, 4 rows", "6 shared distances, 2 rows", "by four rows in place of two"},
    {"bm3d", "7 fused filtering", "6 shared distances, 4 rows", "one kernel from patches to sums, groups in shared memory"},
    {"bm3d", "8 on-chip aggregation", "7 fused filtering", "the sums of a block's patches in shared memory"},
    {"bm3d", "9 one weight a patch", "8 on-chip aggregation", "weights added once for a patch"},
    {"bm3d", "10 whole numbers", "9 one weight a patch", "sums of whole numbers in place of floats"},
    {"bm3d", "ungrain", "1 own distances", "everything together: the product's first step, which computes more"},
};
// clang-format on

}  // namespace

std::span<const Idea> ideas() { return all_ideas; }

}  // namespace ungrain::study

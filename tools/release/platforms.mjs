// Where prebuilt kernels run: one package each, compiled by Zig's clang, which brings every platform's headers and C++ library.
import { join } from "node:path";
import { root } from "../lib/steps.mjs";

/** `zig` is the target; glibc 2.28 is that of Debian 10, RHEL 8 and Ubuntu 18.10. */
export const platforms = [
  { name: "linux-x64-gnu", os: "linux", cpu: "x64", libc: "glibc", zig: "x86_64-linux-gnu.2.28" },
  { name: "linux-arm64-gnu", os: "linux", cpu: "arm64", libc: "glibc", zig: "aarch64-linux-gnu.2.28" },
  { name: "linux-x64-musl", os: "linux", cpu: "x64", libc: "musl", zig: "x86_64-linux-musl" },
  { name: "linux-arm64-musl", os: "linux", cpu: "arm64", libc: "musl", zig: "aarch64-linux-musl" },
  { name: "darwin-arm64", os: "darwin", cpu: "arm64", zig: "aarch64-macos.13.0" },
  { name: "darwin-x64", os: "darwin", cpu: "x64", zig: "x86_64-macos.13.0" },
  { name: "win32-x64", os: "win32", cpu: "x64", zig: "x86_64-windows-gnu" },
];

export const packageNameOf = ({ name }) => `@octavo/kernels-${name}`;

/** Where build-prebuilt.mjs writes a platform's addon. */
export const prebuiltPath = (name) => join(root, ".octavo", "prebuilt", name, "octavo_kernels.node");

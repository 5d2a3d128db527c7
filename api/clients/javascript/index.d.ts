// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />

/** What the sandbox did to the code, by evidence. A program that fails by itself has none. */
export interface SandboxFault {
  type: SandboxFaultType;
  message: string;
  evidence: string | null;
}

export type SandboxFaultType =
  | "timeout"
  | "oom"
  | "escape_blocked"
  | "killed"
  | "startup_failed"
  | "output_limit"
  | "disk_full"
  | "cancelled"
  | "lost";

/** A file of the workspace, and what a call did to it. */
export interface FileInfo {
  path: string;
  size: number;
  change: "created" | "modified";
}

/**
 * A rich result: the value of the last expression, what display() was given, a figure. `data` has one
 * text for each MIME type it comes in; images are base64 there (png and jpeg give the bytes).
 */
export class Result {
  data: Record<string, string>;
  isMain: boolean;
  readonly text?: string;
  readonly html?: string;
  readonly markdown?: string;
  readonly svg?: string;
  readonly latex?: string;
  readonly json?: string;
  readonly png: Buffer | null;
  readonly jpeg: Buffer | null;
  formats(): string[];
}

/** The outcome of one call. `fault` tells whether the sandbox acted; the rest is the program's own. */
export class ExecutionResult {
  stdout: string;
  stderr: string;
  /** -1: it has no exit code. */
  exitCode: number;
  durationMs: number;
  fault: SandboxFault | null;
  files: FileInfo[];
  /** Paths of the workspace that are gone. */
  deleted: string[];
  /** There was more output than maxOutputBytes. */
  truncated: boolean;
  results: Result[];
  /** Of the execution, for GET /v1/executions/{id}. */
  id: string | null;
  usage: Record<string, unknown>;
  /** exitCode is 0 and there is no fault. */
  readonly success: boolean;
}

/**
 * The program's own mistake, or a server that can't: a bad option, a path outside the workspace, a box
 * that could not start. What the sandbox did to running code is `ExecutionResult.fault`.
 */
export class SandboxError extends Error {
  /** Stable, made for programs; null where no server said it. */
  readonly code: string | null;
  /** Of HTTP. */
  readonly status: number | null;
  readonly remediation: string;
}

/** A directory of this host that must not be seen by a box, or a target it must not cover. */
export class MountRefused extends SandboxError {}

export interface ServerOptions {
  /** http://HOST:PORT; needs a token. */
  url?: string;
  token?: string;
  tokenFile?: string;
  socketPath?: string;
}

/**
 * A kernd. Without options it is the user's own one, started when a call finds none; KERND_URL and
 * KERND_TOKEN_FILE, or KERND_SOCKET, are read first.
 */
export class Server {
  constructor(options?: ServerOptions);
}

/** The target, or the target and whether the box may write there. */
export type MountSpec = string | [target: string, mode: "ro" | "rw"];

export type OutputCallback = (chunk: Buffer) => void;

export interface SandboxOptions {
  /** An OCI image, where the server has an engine for them. */
  image?: string | null;
  /** Run once when opened, with the network on: "pip install pandas". */
  setup?: string | null;
  /** A directory of this host; by default one that goes at the end. */
  workspace?: string | null;
  /** 512 by default. */
  memoryMb?: number | null;
  /** Cores; no cap by default. */
  cpus?: number | null;
  /** 256 by default. */
  pids?: number | null;
  /** Seconds a call may take, 30 by default. */
  timeoutS?: number | null;
  /** RELAXES ISOLATION: the host's network. */
  network?: boolean | null;
  egressAllow?: string[] | null;
  /** By source. */
  mounts?: Record<string, MountSpec> | null;
  profiles?: string[] | null;
  env?: Record<string, string> | null;
  /** Kept of stdout and of stderr; 64 MiB by default. */
  maxOutputBytes?: number | null;
  enforceLimits?: boolean | null;
  /** Refuse to run where the kernel does not enforce the caps. */
  requireLimits?: boolean | null;
  securityProfile?: "untrusted" | null;
  apparmor?: string | null;
  /** ["ALL"] by default. */
  capDrop?: string[] | null;
  /** Calls can't change what setup installed. */
  depsReadonly?: boolean | null;
  /** Tell which files a call changed; true by default. */
  trackFiles?: boolean | null;
  /** Hears the bytes as they come. */
  onStdout?: OutputCallback | null;
  onStderr?: OutputCallback | null;
  server?: Server | null;
}

export type Language = "python" | "bash" | "node";

/** For one call alone. A callback that is left out is the sandbox's, null turns it off. */
export interface PerCallOptions {
  timeoutS?: number | null;
  onStdout?: OutputCallback | null;
  onStderr?: OutputCallback | null;
}

export interface KernelOptions {
  /** Of cells that name none. */
  timeoutS?: number | null;
  /** What a cell's deadline ends: the kernel, or the cell alone. "kill" by default. */
  onTimeout?: "kill" | "interrupt";
}

/**
 * Files persist between calls, processes do not. Safe by default: no network, no directory of the
 * host, limits on everything.
 */
export class Sandbox {
  constructor(options?: SandboxOptions);
  /** Makes the session and runs `setup`. */
  open(): Promise<this>;
  /** Ends what runs and removes the files, unless they are in a `workspace` of the host. */
  close(): Promise<void>;
  /** Runs code in a fresh box on the workspace. */
  runCode(code: string, options?: { language?: Language } & PerCallOptions): Promise<ExecutionResult>;
  /** Runs a program: a list, never a line for a shell. */
  run(command: string[], options?: PerCallOptions): Promise<ExecutionResult>;
  /** Makes or replaces a file of the workspace, in one step. */
  writeFile(path: string, data: Buffer | Uint8Array | string): Promise<void>;
  readFile(path: string, options?: { maxBytes?: number | null }): Promise<Buffer>;
  /** All regular files of the workspace or of a directory of it, without what setup installed. */
  listFiles(subdir?: string): Promise<FileInfo[]>;
  /** Writes all files of the workspace to an archive (.tar.gz) on this host. */
  snapshot(dest: string): Promise<void>;
  /** Puts the files of an archive into the workspace: all of them, or none if one is hostile. */
  restore(src: string): Promise<void>;
  /** A python interpreter that keeps its variables. */
  kernel(options?: KernelOptions): Promise<Kernel>;
}

export class Kernel {
  private constructor();
  /** Runs a cell. An exception in it leaves the kernel and its variables as they are. */
  runCode(code: string, options?: { timeoutS?: number | null }): Promise<ExecutionResult>;
  close(): Promise<void>;
}

/** Opens a sandbox, gives it to fn, and closes it whatever happens. */
export function withSandbox<T>(fn: (sandbox: Sandbox) => Promise<T>): Promise<T>;
export function withSandbox<T>(options: SandboxOptions, fn: (sandbox: Sandbox) => Promise<T>): Promise<T>;

/** Runs code in a box of which nothing is left. */
export function runCode(
  code: string,
  options?: SandboxOptions & { language?: Language },
): Promise<ExecutionResult>;

export const version: string;

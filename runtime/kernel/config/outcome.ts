/** The result of loading the configuration: values with their sources, or all failures. */

/** Where a value comes from. */
export type Source =
  | { readonly kind: 'default' }
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'environment'; readonly name: string }
  /** Copied or computed from other keys because no value was given. */
  | { readonly kind: 'fallback'; readonly from: string }

/** Dotted key, such as `server.tls.cert_pem_path` or `chains.0.id`, to the source of its value. */
export type Sources = ReadonlyMap<string, Source>

/** One fault that prevents the start. Never contains a secret. */
export interface Failure {
  /** The dotted key, environment variable or file with the fault. */
  readonly key: string
  /** The faulty value as it may be printed. Absent without a value, or if it must not be printed. */
  readonly value?: string
  readonly source: Source
  /** What is wrong: a sentence without a full stop. */
  readonly rule: string
  /** What to change. */
  readonly fix: string
}

export type Loaded<Settings> =
  | { readonly tag: 'loaded'; readonly settings: Settings; readonly sources: Sources }
  | {
      readonly tag: 'refused'
      readonly failures: readonly Failure[]
      /** The tree with undefined in place of invalid values, for the remaining checks. */
      readonly partial: Partially<Settings>
    }

export type Partially<T> = T extends readonly unknown[]
  ? T | undefined
  : T extends object
    ? { readonly [K in keyof T]: Partially<T[K]> | undefined }
    : T | undefined

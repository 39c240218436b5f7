/** What reading the configuration comes to: values with their sources, or every failure at once. */

/** Where a value comes from. */
export type Source =
  | { readonly kind: 'default' }
  | { readonly kind: 'file'; readonly path: string; readonly line: number }
  | { readonly kind: 'environment'; readonly name: string }
  /** Taken or computed from other keys because it was not given. */
  | { readonly kind: 'fallback'; readonly from: string }

/** Dotted key, e.g. `server.tls.cert_pem_path` or `chains.0.id`, to the source of its value. */
export type Sources = ReadonlyMap<string, Source>

/** One thing that stops the start. Never holds a secret. */
export interface Failure {
  /** Dotted key, environment name or file that is at fault. */
  readonly key: string
  /** The value at fault as it may be printed; absent when there is none or it must not be shown. */
  readonly value?: string
  readonly source: Source
  /** What is wrong, as a sentence without a full stop. */
  readonly rule: string
  /** What to change. */
  readonly fix: string
}

export type Loaded<Settings> =
  | { readonly tag: 'loaded'; readonly settings: Settings; readonly sources: Sources }
  | {
      readonly tag: 'refused'
      readonly failures: readonly Failure[]
      /** The tree with undefined where a value failed, for checks that go on regardless. */
      readonly partial: Partially<Settings>
    }

export type Partially<T> = T extends readonly unknown[]
  ? T | undefined
  : T extends object
    ? { readonly [K in keyof T]: Partially<T[K]> | undefined }
    : T | undefined

/** The shape of a check of `svc doctor`, and what all checks use (docs/guides/operations/doctor.md). */
import type { LoadedSettings } from '../../process/configuration/load-settings.js'
import type { DatabaseUrls } from '../../../storage/platform/settings.js'

export type Verdict = 'ok' | 'warn' | 'fail'

export interface Check {
  readonly name: string
  readonly verdict: Verdict
  /** What was found. Never a secret. */
  readonly detail: string
  /** What to change. Empty when the verdict is ok. */
  readonly fix: string
}

export interface Patient {
  readonly settings: LoadedSettings['settings']
  readonly plane: LoadedSettings['plane']
  readonly dataDir: string
  /** True where missing protection is a failure instead of a warning. */
  readonly isProduction: boolean
  /** Undefined when no database can be reached. */
  readonly urls: DatabaseUrls | undefined
  /** PEM of the private CA of the public address. */
  readonly ca: string | undefined
}

/** Time limit of one question to another system: a busy machine is no fault of it. */
export const ANSWER_MS = 10_000

export const ok = (name: string, detail: string): Check => ({
  name,
  verdict: 'ok',
  detail,
  fix: '',
})
export const warn = (name: string, detail: string, fix: string): Check => ({
  name,
  verdict: 'warn',
  detail,
  fix,
})
export const fail = (name: string, detail: string, fix: string): Check => ({
  name,
  verdict: 'fail',
  detail,
  fix,
})
/** A failure in production, a warning elsewhere. */
export const failInProduction = (
  { isProduction }: Pick<Patient, 'isProduction'>,
  name: string,
  detail: string,
  fix: string,
): Check => (isProduction ? fail : warn)(name, detail, fix)

/** The text of an error with its innermost cause, which often names the address. */
export function whyOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error instanceof AggregateError && error.errors.length > 0) return whyOf(error.errors[0])
  const { message, cause } = error
  const inner = cause === undefined || cause === null ? '' : whyOf(cause)
  return inner === '' || message.includes(inner) ? message : `${message}: ${inner}`
}

/** Runs a check, and turns an error of it into a failure. */
export async function guarded(
  name: string,
  fix: string,
  work: () => Promise<Check | readonly Check[]>,
): Promise<readonly Check[]> {
  try {
    const found = await work()
    return 'name' in found ? [found] : found
  } catch (error) {
    return [fail(name, whyOf(error), fix)]
  }
}

/** Runs work with a time limit. @throws when it is over. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms / 1000} s`)), ms)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

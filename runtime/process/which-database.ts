/**
 * Describes, for operators, which database a command or a start uses, and which setting it comes
 * from.
 */
import { DatabaseUnreachable } from '../../storage/platform/unavailable.js'
import type { Source } from '../kernel/config/outcome.js'
import type { LoadedSettings } from './configuration/load-settings.js'
import { errorText } from './error-text.js'

type Read = Pick<LoadedSettings, 'settings' | 'sources'>

const URL_KEYS = [
  'url',
  'migration_url',
  'identity_url',
  'listener_url',
  'auth_url',
  'control_url',
  'async_url',
  'maintenance_url',
] as const

/** The source of the database URL: `DATABASE_URL`, or a line of a file. */
function givenBy({ settings, sources }: Read, error: DatabaseUnreachable): string | undefined {
  const key = URL_KEYS.find((name) => error.isAt(settings.database[name]))
  const source = key === undefined ? undefined : sources.get(`database.${key}`)
  return source === undefined ? undefined : wordsOf(source)
}

function wordsOf(source: Source): string | undefined {
  switch (source.kind) {
    case 'environment':
      return source.name
    case 'file':
      return `${source.path} line ${source.line}`
    case 'fallback':
      return source.from
    case 'default':
      return undefined
  }
}

/** An error as text for an operator. For an unreachable database it includes the setting. */
export function explainedBy(read: Read | undefined, error: unknown): string {
  if (!(error instanceof DatabaseUnreachable) || read === undefined) return errorText(error)
  const from = givenBy(read, error)
  const reason = errorText(error).slice(error.message.length)
  return `${error.message}${from === undefined ? '' : `, from ${from}`}${reason}`
}

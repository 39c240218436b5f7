/** The texts of GET /errors and GET /errors/{name} in all languages. The types require every problem type in each. */
import type { Locale } from '../../../actors/domain/i18n/locales.js'
import { PROBLEM_TYPES, type ProblemName } from '../../response/problems.js'
import { PROBLEM_ADVICE, type ProblemTexts, RETRY_RULES } from '../problem-advice.js'
import { ar } from './ar.js'
import { de } from './de.js'
import { es } from './es.js'
import { fr } from './fr.js'
import { it } from './it.js'
import { ja } from './ja.js'
import { pt } from './pt.js'

/** English is the language of problem documents, which have the same title and meaning. */
const en: ProblemTexts = {
  words: {
    status: 'Status {status}, error code',
    cause: 'Cause',
    remedy: 'What to do',
    retry: 'Retry',
    all: 'All problem types',
    intro:
      'Errors of this service are problem documents (RFC 9457). The member `type` is the address of one of these pages.',
  },
  retry: RETRY_RULES,
  types: Object.fromEntries(
    (Object.keys(PROBLEM_TYPES) as ProblemName[]).map((name) => {
      const { title, meaning } = PROBLEM_TYPES[name]
      return [name, [title, meaning, PROBLEM_ADVICE[name].remedy]] as const
    }),
  ) as ProblemTexts['types'],
}

export const PROBLEM_TEXTS: Readonly<Record<Locale, ProblemTexts>> = {
  en,
  de,
  fr,
  es,
  it,
  pt,
  ja,
  ar,
}

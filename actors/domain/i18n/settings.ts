/** [i18n]: the language of pages and mails (docs/guides/identity/languages.md). */
import { z } from 'zod'
import { flag } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'
import { LOCALES } from './locales.js'

export const i18nSettings = section(
  'i18n',
  {
    enabled: flag(true).describe(
      'Pages and mails are in a language that the application (ui_locales) or the browser (Accept-Language) requests. ' +
        'False: in the language of the tenant, otherwise in default_locale.',
    ),
    default_locale: z
      .enum(LOCALES)
      .default('en')
      .describe('The language if neither the request nor the tenant chooses one.'),
  },
  { about: 'Languages of the hosted pages and of mails.' },
)

export type I18nSettings = SettingsOf<typeof i18nSettings>

/** The defaults of `[i18n]`. */
export const I18N_DEFAULTS: I18nSettings = { enabled: true, default_locale: 'en' }

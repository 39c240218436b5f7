/**
 * Renders pages with eta templates, compiled at start, that escape all values. The templates are in
 * `gateway/pages/templates/`, are shipped as source like the migrations, and are read once.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Eta } from 'eta'
import { filledIn } from '../../../actors/domain/languages.js'
import type { Locale } from '../../../actors/domain/locales.js'
import type { MessageKey } from '../catalogue/en.js'
import { chooseLanguage, type Language } from './language.js'
import { PASSKEY_SCRIPT } from './script.js'
import { BRAND_PATH, STYLE_PATH } from './style.js'

const FOLDER = fileURLToPath(new URL('../../../../gateway/pages/templates/', import.meta.url))

const eta = new Eta({ autoEscape: true, useWith: false, cache: true })
for (const file of readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.eta')) continue
  eta.loadTemplate(`@${basename(file, '.eta')}`, readFileSync(join(FOLDER, file), 'utf8'))
}

/** The tenant in whose name a page is shown. */
export type Branding = {
  readonly name: string
  /** `#rrggbb`; null: ours. */
  readonly color: string | null
  /** `data:` URI; null: none. */
  readonly logo: string | null
  /** For users whose requested languages are not available; null: English. */
  readonly locale: Locale | null
  /** Email address or page for help; null: none. */
  readonly supportContact: string | null
}

/** The frame of a page; `titleKey` is the window title and the heading. */
export type Frame = {
  readonly titleKey: MessageKey
  /** Replaces the text of `titleKey` by a title without translation. */
  readonly title?: string | undefined
  readonly branding: Branding | null
  readonly uiLocales?: string | null | undefined
  readonly acceptLanguage: string | undefined
  /** The error of the form and its field, shown first and linked to it. */
  readonly error?: { readonly key: MessageKey; readonly field: string | null } | undefined
  /** The page has a passkey form. */
  readonly scripted?: boolean | undefined
  /** Where the browser is redirected automatically: a same-origin path or an https URL. */
  readonly onward?: string | undefined
  /** How long to wait, for `{wait}` in `error`. */
  readonly retryAfterSecs?: number | undefined
}

type Names = Readonly<Record<string, string>>

const escaped = (text: string) => eta.config.escapeFunction(text)

/**
 * HTML of a sentence with every name set off (HTML `bdi`): a name may read like the text around it, "Acme
 * (bank.example) only wants to", and its text direction must not affect that text.
 */
function withNames(words: string, names: Names): string {
  const marked = Object.entries(names).map(([key, name]) => [
    key,
    `<bdi class="name">${escaped(name)}</bdi>`,
  ])
  return filledIn(escaped(words), Object.fromEntries(marked))
}

/**
 * Renders a template inside of the frame. In a template `it.say(key)` and `it.time(date)` are texts,
 * `it.sayWithNames(key, names)` is HTML with names chosen by others, `it.frame` is the frame, and the members of
 * `content` are members of `it`. A page of several parts includes them with `include('@page-part', it)`, one part per
 * task.
 */
export function renderPage(
  template: string,
  frame: Frame,
  content: Readonly<Record<string, unknown>>,
): string {
  const { uiLocales, acceptLanguage, branding } = frame
  const { locale, say, time, minutes, lasting }: Language = chooseLanguage(
    uiLocales,
    acceptLanguage,
    branding?.locale,
  )
  const sayWithNames = (key: MessageKey, names: Names) => withNames(say(key), names)
  const shared = { frame, locale, say, sayWithNames, time, lasting }
  const body = eta.render(`@${template}`, { ...content, ...shared })
  const color = branding?.color ?? null
  const title = frame.title ?? say(frame.titleKey)
  return eta.render('@frame', {
    ...shared,
    page: template,
    // Screen readers read the title first when the page is shown again (WCAG technique G199).
    heading: title,
    title: frame.error === undefined ? title : say('common.error.title', { title }),
    wait: minutes(frame.retryAfterSecs ?? 0),
    body,
    style: STYLE_PATH,
    script: frame.scripted === true ? PASSKEY_SCRIPT : null,
    brand: color === null ? null : `${BRAND_PATH}/${color.slice(1)}`,
  })
}

/**
 * Puts pages together: eta templates, compiled at start, that escape whatever is put into them.
 * They lie in `templates/` beside this file's source, as the migrations do, and are read once.
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

/** The tenant on whose behalf a page is shown. */
export type Branding = {
  readonly name: string
  /** `#rrggbb`; null: ours. */
  readonly color: string | null
  /** `data:` URI; null: none. */
  readonly logo: string | null
  /** For those who ask for no language that there is; null: English. */
  readonly locale: Locale | null
  /** An address or page where people find help; null: none. */
  readonly supportContact: string | null
}

/** What the frame of a page needs; `titleKey` names it in the window and above the content. */
export type Frame = {
  readonly titleKey: MessageKey
  /** In place of the words of `titleKey`: a title that has no translation. */
  readonly title?: string | undefined
  readonly branding: Branding | null
  readonly uiLocales?: string | null | undefined
  readonly acceptLanguage: string | undefined
  /** What is wrong with the form, with the fields it concerns; shown first and linked to them. */
  readonly error?: { readonly key: MessageKey; readonly field: string | null } | undefined
  /** The page takes passkeys. */
  readonly scripted?: boolean | undefined
  /** Where the browser goes on by itself at once: an own path or an https address. */
  readonly onward?: string | undefined
  /** How long to wait, where `error` says `{wait}`. */
  readonly retryAfterSecs?: number | undefined
}

type Names = Readonly<Record<string, string>>

const escaped = (text: string) => eta.config.escapeFunction(text)

/**
 * HTML of a sentence in which every name is set off: a name may read like the words around it, "Acme
 * (bank.example) only wants to", and its direction must not become theirs (HTML, `bdi`).
 */
function withNames(words: string, names: Names): string {
  const marked = Object.entries(names).map(([key, name]) => [
    key,
    `<bdi class="name">${escaped(name)}</bdi>`,
  ])
  return filledIn(escaped(words), Object.fromEntries(marked))
}

/**
 * Renders a template inside of the frame. In a template `it.say(key)` and `it.time(date)` are the
 * words, `it.told(key, names)` words as HTML with names that others gave themselves, `it.frame` the
 * frame, and the members of `content` are at `it` itself. A page of several parts takes them in with
 * `include('@page-part', it)`, one part for each thing that can be done there.
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
  const told = (key: MessageKey, names: Names) => withNames(say(key), names)
  const shared = { frame, locale, say, told, time, lasting }
  const body = eta.render(`@${template}`, { ...content, ...shared })
  const color = branding?.color ?? null
  const title = frame.title ?? say(frame.titleKey)
  return eta.render('@frame', {
    ...shared,
    page: template,
    // Screen readers read the title first when the page comes back (WCAG technique G199).
    heading: title,
    title: frame.error === undefined ? title : say('common.error.title', { title }),
    wait: minutes(frame.retryAfterSecs ?? 0),
    body,
    style: STYLE_PATH,
    script: frame.scripted === true ? PASSKEY_SCRIPT : null,
    brand: color === null ? null : `${BRAND_PATH}/${color.slice(1)}`,
  })
}

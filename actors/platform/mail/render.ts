/** Renders messages as text and HTML, in the tenant's name and in the language of the recipient. */
import type { Locale } from '../../domain/locales.js'
import { filledIn, timeWriter, wantedLocale } from '../../domain/languages.js'
import { withoutLinks } from '../../domain/shown-names.js'
import { de } from './catalogue/de.js'
import { en, type MailCatalogue, type MailKey } from './catalogue/en.js'

export const MAIL_CATALOGUES: Readonly<Record<string, MailCatalogue>> = { en, de }

/** The content of a message by kind. URLs are absolute. */
export type MessageContent =
  | {
      readonly kind: 'sign_in'
      /** As shown, `XXXX-XXXX`; null: none. */
      readonly code: string | null
      readonly link: string | null
      readonly until: Date
    }
  | {
      readonly kind: 'password_reset' | 'invitation' | 'email_verification'
      readonly link: string
      readonly until: Date
    }
  | {
      readonly kind: 'confirmation_code'
      /** As shown, `XXXX-XXXX`. */
      readonly code: string
      readonly until: Date
    }
  | { readonly kind: 'password_changed'; readonly at: Date }

/** Sender name, color and language. */
export type MessageHeader = {
  readonly tenant: string
  /** `#rrggbb`; null: our default. */
  readonly color: string | null
  /** `ui_locales`, as sent. */
  readonly uiLocales?: string | null | undefined
  /** Accept-Language, as sent. */
  readonly languages?: string | undefined
  /** The tenant's language, if none of the requested ones is available; null: English. */
  readonly locale?: Locale | null | undefined
}

/** A rendered message. */
export type MailMessage = {
  readonly to: string
  readonly locale: string
  readonly subject: string
  readonly text: string
  readonly html: string
}

type Part =
  | { readonly tag: 'words'; readonly words: string }
  | { readonly tag: 'quiet'; readonly words: string }
  | { readonly tag: 'code'; readonly code: string }
  | { readonly tag: 'link'; readonly link: string; readonly button: string; readonly copy: string }

export function renderMessage(
  to: string,
  content: MessageContent,
  header: MessageHeader,
): MailMessage {
  const locales = Object.keys(MAIL_CATALOGUES)
  const locale = wantedLocale(locales, header.uiLocales, header.languages) ?? header.locale ?? 'en'
  const catalogue = MAIL_CATALOGUES[locale]!
  const tenant = withoutLinks(oneLine(header.tenant))
  const translate = (key: MailKey, values = {}) => filledIn(catalogue[key], { tenant, ...values })
  const parts: Part[] = [
    { tag: 'words', words: translate('mail.greeting') },
    ...partsOf(content, translate, timeWriter(locale)),
    { tag: 'quiet', words: translate('mail.sender') },
  ]
  const subject = translate(`${content.kind}.subject`)
  return {
    to,
    locale,
    subject,
    text: `${parts.map(asText).join('\n\n')}\n`,
    html: htmlPage(locale, subject, tenant, header.color ?? OUR_COLOR, parts),
  }
}

type Translate = (key: MailKey, values?: Readonly<Record<string, string>>) => string

function partsOf(
  content: MessageContent,
  translate: Translate,
  time: (moment: Date) => string,
): Part[] {
  const words = (key: MailKey, values?: Readonly<Record<string, string>>): Part => ({
    tag: 'words',
    words: translate(key, values),
  })
  const link = (address: string, button: MailKey): Part => ({
    tag: 'link',
    link: address,
    button: translate(button),
    copy: translate('mail.link.copy'),
  })
  if (content.kind === 'password_changed') {
    const at = time(content.at)
    return [words('password_changed.lead', { time: at }), words('password_changed.alarm')]
  }
  const until = { time: time(content.until) }
  const ignore = words('mail.ignore')
  if (content.kind === 'confirmation_code') {
    const code: Part = { tag: 'code', code: content.code }
    return [words('confirmation_code.lead'), code, words('sign_in.code.until', until), ignore]
  }
  if (content.kind !== 'sign_in') {
    const { kind } = content
    return [
      words(`${kind}.lead`),
      link(content.link, `${kind}.button`),
      words('mail.link.once', until),
      ignore,
    ]
  }
  const parts = [words('sign_in.lead')]
  if (content.code !== null) {
    const code: Part = { tag: 'code', code: content.code }
    parts.push(words('sign_in.code'), code, words('sign_in.code.until', until))
  }
  if (content.link !== null) {
    const address = link(content.link, 'sign_in.button')
    parts.push(words('sign_in.link'), address, words('mail.link.once', until))
  }
  return [...parts, ignore]
}

function asText(part: Part): string {
  if (part.tag === 'code') return `    ${part.code}`
  if (part.tag === 'link') return part.link
  return part.words
}

const OUR_COLOR = '#1f4fd8'

/** Inline styles, because mail clients drop the rest. Nothing is loaded from a server. */
function htmlPage(
  locale: string,
  subject: string,
  tenant: string,
  color: string,
  parts: readonly Part[],
): string {
  return `<!doctype html>
<html lang="${escaped(locale)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(subject)}</title>
</head>
<body style="margin:0;padding:24px;font-family:system-ui,sans-serif;font-size:16px;line-height:1.5">
<div style="max-width:36em;margin:0 auto">
<p style="margin:0 0 24px;padding:0 0 0 12px;border-left:4px solid ${escaped(color)};font-weight:600">${escaped(tenant)}</p>
${parts.map((part) => asHtml(part)).join('\n')}
</div>
</body>
</html>
`
}

function asHtml(part: Part): string {
  switch (part.tag) {
    case 'code':
      return `<p style="margin:0 0 16px;font-family:ui-monospace,monospace;font-size:28px;letter-spacing:2px">${escaped(part.code)}</p>`
    case 'link': {
      const address = escaped(part.link)
      return `<p style="margin:0 0 16px"><a href="${address}" style="font-size:18px;font-weight:600">${escaped(part.button)}</a></p>
<p style="margin:0 0 16px;font-size:14px">${escaped(part.copy)}<br><span style="word-break:break-all">${address}</span></p>`
    }
    case 'quiet':
      return `<p style="margin:24px 0 0;font-size:14px">${escaped(part.words)}</p>`
    case 'words':
      return `<p style="margin:0 0 16px">${escaped(part.words)}</p>`
  }
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (words: string) => words.replaceAll(/[&<>"']/g, (sign) => ENTITIES[sign]!)

/** Names are user input: a line break in a subject would inject a header. */
const oneLine = (words: string) => words.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()

/** Renders messages as text and HTML, in the tenant's name and in the language of the recipient. */
import type { I18nSettings } from '../../domain/i18n/settings.js'
import { shownEmail } from '../../domain/email.js'
import {
  filledIn,
  localeFor,
  textsIn,
  textWriter,
  timeWriter,
} from '../../domain/i18n/languages.js'
import { directionOf, type Locale } from '../../domain/i18n/locales.js'
import { withoutLinks } from '../../domain/shown-names.js'
import type english from './texts/en.json'

type MailKey = keyof typeof english
/** A file for each language. `{name}` is a placeholder. */
export const MAIL_TEXTS = textsIn<Readonly<Record<MailKey, string>>>(
  new URL('./texts/', import.meta.url),
)

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
      readonly kind: 'password_reset' | 'invitation' | 'email_verification' | 'sign_up'
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
  /** An operator of the deployment issued a recovery link for the account. */
  | { readonly kind: 'account_recovery'; readonly account: string; readonly at: Date }
  /** An administrator of the tenant reset the password. */
  | { readonly kind: 'admin_password_reset'; readonly link: string; readonly until: Date }
  /** An administrator removed the second factors. `link` sets a password; null: another way to sign in is left. */
  | {
      readonly kind: 'admin_factors_reset'
      readonly at: Date
      readonly link: string | null
      readonly until: Date
    }
  /** An administrator tried one of both, but the account is not the tenant's. */
  | { readonly kind: 'admin_reset_refused'; readonly at: Date }
  /** A call of an agent waits for the person. `call`: in short, such as `POST api.example.com`. */
  | {
      readonly kind: 'call_approval'
      readonly agent: string
      readonly call: string
      readonly link: string
      readonly until: Date
    }
  /** A sign-up with an address that is a user of the tenant already. `link`: the sign-in page. */
  | { readonly kind: 'sign_up_known'; readonly link: string }

/** Sender name, color and language. */
export type MessageHeader = {
  readonly tenant: string
  /** `#rrggbb`; null: our default. */
  readonly color: string | null
  /** `ui_locales`, as sent. */
  readonly uiLocales?: string | null | undefined
  /** Accept-Language, as sent. */
  readonly languages?: string | undefined
  /** The tenant's language, if none of the requested ones is available; null: the default of `[i18n]`. */
  readonly locale?: Locale | null | undefined
}

/** A rendered message. */
export type MailMessage = {
  readonly to: string
  readonly locale: Locale
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
  { uiLocales, languages: acceptLanguage, locale: own, ...header }: MessageHeader,
  i18n: I18nSettings,
): MailMessage {
  const locale = localeFor({ uiLocales, acceptLanguage, own }, i18n)
  const texts = MAIL_TEXTS[locale]
  const tenant = withoutLinks(oneLine(header.tenant))
  const write = textWriter(locale)
  const translate = (key: MailKey, values = {}) => write(texts[key], { tenant, ...values })
  const parts: Part[] = [
    { tag: 'words', words: translate('mail.greeting') },
    ...partsOf(content, translate, timeWriter(locale)),
    { tag: 'quiet', words: translate('mail.sender') },
  ]
  // Without directional isolates: not every mail program hides them in a subject.
  const subject = filledIn(texts[`${content.kind}.subject`], { tenant })
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
  if (content.kind === 'account_recovery') {
    const values = { account: oneLine(shownEmail(content.account)), time: time(content.at) }
    return [words('account_recovery.lead', values), words('account_recovery.alarm')]
  }
  if (content.kind === 'admin_reset_refused') {
    const at = time(content.at)
    return [words('admin_reset_refused.lead', { time: at }), words('admin_reset.alarm')]
  }
  const ofLink = (address: string, until: Date): Part[] => [
    link(address, 'password_reset.button'),
    words('mail.link.once', { time: time(until) }),
  ]
  if (content.kind === 'admin_password_reset') {
    const lead = words('admin_password_reset.lead')
    return [lead, ...ofLink(content.link, content.until), words('admin_reset.alarm')]
  }
  if (content.kind === 'admin_factors_reset') {
    const { link: address, until } = content
    const password = words('admin_factors_reset.password')
    return [
      words('admin_factors_reset.lead', { time: time(content.at) }),
      ...(address === null ? [] : [password, ...ofLink(address, until)]),
      words('admin_reset.alarm'),
    ]
  }
  const ignore = words('mail.ignore')
  if (content.kind === 'sign_up_known') {
    return [words('sign_up_known.lead'), link(content.link, 'sign_up_known.button'), ignore]
  }
  const until = { time: time(content.until) }
  if (content.kind === 'call_approval') {
    const agent = withoutLinks(oneLine(content.agent))
    return [
      words('call_approval.lead', { agent }),
      words('call_approval.call', { call: oneLine(content.call) }),
      link(content.link, 'call_approval.button'),
      words('call_approval.until', until),
    ]
  }
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
  locale: Locale,
  subject: string,
  tenant: string,
  color: string,
  parts: readonly Part[],
): string {
  return `<!doctype html>
<html lang="${locale}" dir="${directionOf(locale)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(subject)}</title>
</head>
<body style="margin:0;padding:24px;font-family:system-ui,sans-serif;font-size:16px;line-height:1.5">
<div style="max-width:36em;margin:0 auto">
<p style="margin:0 0 24px;padding-inline-start:12px;border-inline-start:4px solid ${escaped(color)};font-weight:600">${escaped(tenant)}</p>
${parts.map((part) => asHtml(part)).join('\n')}
</div>
</body>
</html>
`
}

function asHtml(part: Part): string {
  switch (part.tag) {
    case 'code':
      return `<p style="margin:0 0 16px;font-family:ui-monospace,monospace;font-size:28px;letter-spacing:2px"><span dir="ltr">${escaped(part.code)}</span></p>`
    case 'link': {
      const address = escaped(part.link)
      return `<p style="margin:0 0 16px"><a href="${address}" style="font-size:18px;font-weight:600">${escaped(part.button)}</a></p>
<p style="margin:0 0 16px;font-size:14px">${escaped(part.copy)}<br><span dir="ltr" style="word-break:break-all">${address}</span></p>`
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

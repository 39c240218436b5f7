/** The secret of `hmac`: a key, and how requests are signed with it (docs/guides/vault/signing.md). */
import { z } from 'zod'
import { isReservedField } from '../egress.js'

/** What stands in braces in a template, besides `{header:NAME}`. */
const STRING_TOKENS = [
  'method',
  'METHOD',
  'scheme',
  'host',
  'path',
  'query',
  'sorted_query',
  'path_with_query',
  'body',
  'body_sha256',
  'timestamp',
  'nonce',
  'key_id',
] as const
export type HmacToken = (typeof STRING_TOKENS)[number] | 'signature'

const NAME = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]{1,64}"
const FIELD_NAME = new RegExp(`^${NAME}$`)
const HEADER_TOKEN = new RegExp(`^header:${NAME}$`)
/** A token of a template, and its name. */
export const TOKEN = /\{([^{}]*)\}/g
const PRINTABLE = /^[\t -~]*$/

const fieldValue = z.string().min(1).max(1024).regex(PRINTABLE, 'Must be printable ASCII.')
const header = z
  .string()
  .regex(FIELD_NAME, 'Must be the name of a header field.')
  .refine((name) => !isReservedField(name.toLowerCase()), 'The proxy sets this header field.')
const query = z.string().regex(/^[A-Za-z0-9._~[\]-]{1,64}$/, 'Must be the name of a parameter.')

const template = {
  algorithm: z.enum(['sha1', 'sha256', 'sha512']),
  key_encoding: z.enum(['utf8', 'base64', 'hex']),
  string: z
    .string()
    .min(1)
    .max(2048)
    .meta({
      description: `What is signed. Tokens: ${STRING_TOKENS.map((each) => `{${each}}`).join(' ')} {header:NAME}.`,
    }),
  timestamp: z.enum(['unix', 'unix_ms', 'rfc3339', 'http_date', 'none']),
  nonce: z.enum(['none', 'uuid', 'hex16']),
  output: z.enum(['hex', 'hex_upper', 'base64', 'base64url']),
  set: z
    .array(
      z.strictObject({ header: header.optional(), query: query.optional(), value: fieldValue }),
    )
    .min(1)
    .max(16)
    .meta({
      description:
        'Header fields and query parameters of the signed request. Each has a header or a query. ' +
        'Tokens as in string, with {signature} and without {body}.',
    }),
  body_hash: z.enum(['none', 'sha256_hex', 'md5_base64']).meta({
    description: 'What {body} stands for: the body, or a hash of it.',
  }),
}
const Template = z.object(template)
export type HmacTemplate = z.output<typeof Template> & {
  /** The caller may send the nonce in this header field. */
  readonly nonceField?: string
  /** A key of Standard Webhooks: base64, after `whsec_`. */
  readonly isWebhookKey?: true
}

const DEFAULTS = {
  algorithm: 'sha256',
  key_encoding: 'utf8',
  timestamp: 'unix',
  nonce: 'none',
  output: 'hex',
  body_hash: 'none',
} as const

/** The schemes of well-known services. */
const PRESETS = {
  coinbase_legacy: {
    ...DEFAULTS,
    key_encoding: 'base64',
    string: '{timestamp}{METHOD}{path_with_query}{body}',
    output: 'base64',
    set: [
      { header: 'CB-ACCESS-KEY', value: '{key_id}' },
      { header: 'CB-ACCESS-SIGN', value: '{signature}' },
      { header: 'CB-ACCESS-TIMESTAMP', value: '{timestamp}' },
    ],
  },
  binance: {
    ...DEFAULTS,
    string: '{query}{body}',
    timestamp: 'unix_ms',
    set: [
      { header: 'X-MBX-APIKEY', value: '{key_id}' },
      { query: 'timestamp', value: '{timestamp}' },
      { query: 'signature', value: '{signature}' },
    ],
  },
  github_webhook: {
    ...DEFAULTS,
    string: '{body}',
    set: [{ header: 'X-Hub-Signature-256', value: 'sha256={signature}' }],
  },
  stripe_style: {
    ...DEFAULTS,
    string: '{timestamp}.{body}',
    set: [{ header: 'Stripe-Signature', value: 't={timestamp},v1={signature}' }],
  },
  standard_webhooks: {
    ...DEFAULTS,
    string: '{nonce}.{timestamp}.{body}',
    nonce: 'uuid',
    nonceField: 'webhook-id',
    isWebhookKey: true,
    output: 'base64',
    set: [
      { header: 'webhook-id', value: '{nonce}' },
      { header: 'webhook-timestamp', value: '{timestamp}' },
      { header: 'webhook-signature', value: 'v1,{signature}' },
    ],
  },
} as const satisfies Readonly<
  Record<string, Omit<HmacTemplate, 'set'> & { set: readonly object[] }>
>

type Preset = keyof typeof PRESETS
const PRESET_NAMES = Object.keys(PRESETS) as Preset[]

export const HmacSecret = z
  .strictObject({
    key: z.string().min(1).max(16_384),
    key_id: fieldValue
      .optional()
      .meta({ description: 'The public name of the key, for {key_id}.' }),
    preset: z
      .enum(PRESET_NAMES)
      .optional()
      .meta({ description: 'The scheme of a well-known service, instead of the members below.' }),
    ...Template.partial().shape,
  })
  .superRefine((secret, { addIssue }) => {
    for (const [path, message] of faultsOf(secret)) addIssue({ code: 'custom', path, message })
  })
  .meta({ id: 'HmacSecret' })
export type HmacSecret = z.output<typeof HmacSecret>

/** How requests are signed with a secret. */
export function templateOf(secret: HmacSecret): HmacTemplate {
  const { preset } = secret
  return (preset === undefined ? { ...DEFAULTS, ...secret } : PRESETS[preset]) as HmacTemplate
}

/** The key in bytes; null if it is not in its encoding. */
export function keyBytes(key: string, template: HmacTemplate): Buffer | null {
  const { key_encoding: encoding, isWebhookKey } = template
  if (isWebhookKey === true) {
    return decoded(key.replace(/^whsec_/, ''), 'base64') ?? Buffer.from(key, 'utf8')
  }
  return encoding === 'utf8' ? Buffer.from(key, 'utf8') : decoded(key, encoding)
}

/** Null unless all of the text is in the encoding. */
function decoded(text: string, encoding: 'base64' | 'hex'): Buffer | null {
  const form = encoding === 'hex' ? /^(?:[0-9a-f]{2})+$/i : /^[A-Za-z0-9+/_-]+={0,2}$/
  if (!form.test(text)) return null
  const bytes = Buffer.from(text, encoding)
  const isWhole = encoding === 'hex' || text.replace(/=+$/, '').length % 4 !== 1
  return isWhole && bytes.length > 0 ? bytes : null
}

type Fault = readonly [path: (string | number)[], message: string]

function* faultsOf(secret: HmacSecret): Generator<Fault> {
  const { key, key_id: keyId, preset, ...own } = secret
  if (preset !== undefined) {
    const more = Object.keys(own)[0]
    if (more !== undefined) yield [[more], 'Must be omitted with a preset.']
  } else {
    for (const name of ['string', 'set'] as const)
      if (own[name] === undefined) yield [[name], 'Required without a preset.']
  }
  if (preset === undefined && (own.string === undefined || own.set === undefined)) return
  const template = templateOf(secret)
  if (keyBytes(key, template) === null) yield [['key'], `Must be ${template.key_encoding}.`]
  const texts: Fault[] = [[['string'], template.string]]
  for (const [index, each] of template.set.entries()) {
    if ((each.header === undefined) === (each.query === undefined))
      yield [['set', index], 'Must have either a header or a query.']
    texts.push([['set', index, 'value'], each.value])
  }
  for (const [path, text] of texts) {
    for (const token of tokensOf(text)) {
      const fault = tokenFault(token, path[0] === 'string', template, keyId)
      if (fault !== undefined) yield [fault === KEY_ID_NEEDED ? ['key_id'] : path, fault]
    }
  }
  if (!template.set.some((each) => tokensOf(each.value).includes('signature')))
    yield [['set'], 'One value must contain {signature}.']
}

export const tokensOf = (text: string): string[] =>
  [...text.matchAll(TOKEN)].map(([, name]) => name!)

const KEY_ID_NEEDED = 'Required: {key_id} stands for it.'

function tokenFault(
  token: string,
  isString: boolean,
  { timestamp, nonce }: HmacTemplate,
  keyId: string | undefined,
): string | undefined {
  if (token === (isString ? 'signature' : 'body')) return `Must not contain {${token}}.`
  const isKnown = token === 'signature' || (STRING_TOKENS as readonly string[]).includes(token)
  if (!isKnown && !HEADER_TOKEN.test(token)) return 'Contains an unknown token.'
  if (token === 'timestamp' && timestamp === 'none') return 'Contains {timestamp}, which is none.'
  if (token === 'nonce' && nonce === 'none') return 'Contains {nonce}, which is none.'
  return token === 'key_id' && keyId === undefined ? KEY_ID_NEEDED : undefined
}

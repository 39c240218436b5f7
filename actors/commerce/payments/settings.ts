/**
 * [commerce] and [[chains]]: payment links, checkout, card payments and x402
 * (docs/reference/commerce.md).
 */
import { z } from 'zod'
import {
  count,
  flag,
  list,
  notes,
  seconds,
  secret,
  text,
  timerSeconds,
  url,
} from '../../../runtime/kernel/config/kinds.js'
import { section, sectionList, type SettingsOf } from '../../../runtime/kernel/config/section.js'

const RPC_EXAMPLE = 'https://rpc.example.com'
const CARD_API = 'https://api.stripe.com'

/** A host as it appears in a URL, with or without a port. */
const pageHost = () =>
  z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?(?::[0-9]{1,5})?$/)
    .register(notes, { words: 'a host name in lower case, with or without a port' })

export const commerceSettings = section(
  'commerce',
  {
    enabled: flag(false).describe('Payment links, checkout and subscriptions.'),
    checkout_ttl_secs: seconds(86_400).describe('Lifetime of a checkout session.'),
    checkout_retention_days: count(90, 1, 3_650).describe(
      'How long an expired checkout without a payment attempt is kept.',
    ),
    card: z.object({
      provider: z
        .enum(['none', 'stripe_compatible'])
        .default('none')
        .describe(
          'Card payments in production tenants, by a provider with a Stripe-compatible API.',
        ),
      api_base_url: url(['https:', 'http:'], 'an https URL', CARD_API)
        .default(CARD_API)
        .describe('Base URL of the API. Production: https.'),
      secret_key: secret().optional().describe('API key of the provider account.'),
      webhook_secret: secret(16)
        .optional()
        .describe('Signing secret of the webhook endpoint /api/v1/commerce/card/events.'),
      checkout_hosts: list(pageHost())
        .default(['checkout.stripe.com'])
        .describe("Hosts of the provider's payment pages. Buyers are redirected to no other host."),
      timeout_secs: timerSeconds(10).describe('Timeout of one call to the provider.'),
      clearing_days: count(7, 0, 365).describe('How long a card payment is held before release.'),
    }),
    redirect_hosts: list(z.string().min(1))
      .default([])
      .describe('Hosts allowed in success_url and cancel_url.'),
    x402_enabled: flag(false).describe('x402 payments.'),
    x402_v1_compat: flag(false).describe('Support version 1 of the x402 protocol, too.'),
    x402_facilitator_url: url(['https:', 'http:'], 'an https URL', 'https://x402.example.com')
      .optional()
      .describe('URL of the facilitator. Production: https.'),
    x402_max_timeout_secs: seconds(60, 3_600).describe('How long a payment stays payable.'),
  },
  {
    about: 'Public buyer commerce.',
    rules: [
      {
        keys: ['card.secret_key', 'card.provider'],
        holds: ({ card }) => card.provider === 'none' || card.secret_key !== undefined,
        rule: 'be set when commerce.card.provider is stripe_compatible',
        fix: 'set SVC_COMMERCE__CARD__SECRET_KEY',
      },
      {
        keys: ['card.webhook_secret', 'card.provider'],
        holds: ({ card }) => card.provider === 'none' || card.webhook_secret !== undefined,
        rule: 'be set when commerce.card.provider is stripe_compatible',
        fix: 'set SVC_COMMERCE__CARD__WEBHOOK_SECRET',
      },
      {
        keys: ['card.checkout_hosts', 'card.provider'],
        holds: ({ card }) => card.provider === 'none' || card.checkout_hosts.length > 0,
        rule: 'not be empty when commerce.card.provider is stripe_compatible',
        fix: 'list the hosts of the payment pages in commerce.card.checkout_hosts',
      },
      {
        keys: ['card.provider', 'enabled'],
        holds: ({ card, enabled }) => card.provider === 'none' || enabled,
        rule: 'be "none" unless commerce.enabled is true',
        fix: 'set commerce.enabled = true',
      },
    ],
  },
)

/** Blocks, where `[[chains]].confirmations` is unset. */
export const PAYMENT_CONFIRMATIONS = 5
export const REGISTRY_CONFIRMATIONS = 12

const contract = () =>
  z
    .string()
    .regex(/^0x[0-9a-fA-F]{40}$/)
    .register(notes, {
      words: 'an address: 0x and 40 hexadecimal digits',
      example: '0x8004A169FB4a3325136EB29fA0ceB6D2e539a432',
    })

export const chainsSettings = sectionList(
  'chains',
  {
    id: z
      .string()
      .regex(/^eip155:[1-9][0-9]{0,14}$/)
      .register(notes, {
        words:
          'the CAIP-2 id of an EVM chain, eip155:<number>; this build settles payments in no other namespace, such as solana',
        example: 'eip155:84532',
      })
      .describe('CAIP-2 id of the chain. Only chains of eip155 are supported.'),
    rpc_url: url(['https:', 'http:'], 'an http or https URL', '')
      .register(notes, { words: 'an http or https URL', secret: true, example: RPC_EXAMPLE })
      .optional()
      .describe(
        'JSON-RPC node that is queried for the outcome of payments and for registries. Treated as a secret, because it often contains a key.',
      ),
    asset: text('0x036CbD53842c5426634e7929541eC2318f3dCF7e').describe(
      'Contract address of the asset.',
    ),
    asset_name: text('USDC').describe('EIP-712 name of the asset.'),
    asset_version: text('2').describe('EIP-712 version of the asset.'),
    asset_decimals: count(6, 0, 36).describe('Decimals of the asset.'),
    asset_currency: z
      .string()
      .regex(/^[A-Z]{3}$/)
      .register(notes, { words: 'an ISO 4217 code in upper case' })
      .default('USD')
      .describe('Currency whose prices the asset pays, one to one.'),
    confirmations: count(PAYMENT_CONFIRMATIONS, 0, 1_000)
      .unwrap()
      .register(notes, { example: REGISTRY_CONFIRMATIONS })
      .optional()
      .describe(
        'Confirmations (blocks) before a transfer pays a checkout and before a log of a registry becomes an event. Unset: 5 and 12.',
      ),
    identity_registry: contract()
      .optional()
      .describe(
        'Contract address of the ERC-8004 Identity Registry. Agents that it lists can be anchors, and its logs are events.',
      ),
    reputation_registry: contract()
      .optional()
      .describe('Contract address of the ERC-8004 Reputation Registry, whose logs are events.'),
    read_every_ms: count(2_000, 100, 3_600_000).describe(
      'How often the logs of the registries are read, in milliseconds.',
    ),
    pay_to: text('0x0000000000000000000000000000000000000001')
      .optional()
      .describe('Default payee of the operator tenant. Other tenants set x402_pay_to.'),
  },
  { about: 'One table per chain. Adds to the built-in chains and overrides them.' },
)

export type ChainsSettings = SettingsOf<typeof chainsSettings>

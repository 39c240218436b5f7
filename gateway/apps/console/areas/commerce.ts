/** Commerce in the console. */
import { type ConsoleResource, get, type Item } from '../declaration.js'

const of = (path: string) => `/api/v1/commerce/${path}`
const WALLET = '/api/v1/agents/{agent_id}/wallet'
const isPaid = ({ status }: Item) => status === 'succeeded'

export const commerceResources: readonly ConsoleResource[] = [
  {
    name: 'products',
    group: 'commerce',
    list: get(of('products')),
    item: get(of('products/{id}')),
    named: ['name'],
    columns: ['name', 'active', 'created_at'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: of('products') },
      { name: 'change', on: 'item', method: 'PATCH', path: of('products/{id}'), fills: true },
    ],
  },
  {
    name: 'prices',
    group: 'commerce',
    list: get(of('prices')),
    item: get(of('prices/{id}')),
    named: ['id'],
    columns: ['id', 'product_id', 'amount_minor', 'currency', 'active'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: of('prices') },
      { name: 'change', on: 'item', method: 'PATCH', path: of('prices/{id}'), fills: true },
    ],
  },
  {
    name: 'payment-links',
    group: 'commerce',
    list: get(of('payment-links')),
    item: get(of('payment-links/{id}')),
    named: ['url', 'id'],
    columns: ['url', 'price_id', 'quantity', 'active'],
    actions: [
      { name: 'create', on: 'list', method: 'POST', path: of('payment-links') },
      { name: 'change', on: 'item', method: 'PATCH', path: of('payment-links/{id}'), fills: true },
    ],
  },
  {
    name: 'charges',
    group: 'commerce',
    list: get(of('charges')),
    item: get(of('charges/{id}')),
    id: 'charge_id',
    named: ['charge_id'],
    columns: ['charge_id', 'amount_minor', 'currency', 'status', 'created_at'],
    actions: [
      {
        name: 'refund',
        on: 'item',
        method: 'POST',
        path: of('charges/{id}/refund'),
        danger: true,
        when: isPaid,
      },
    ],
    children: [
      {
        name: 'refunds',
        group: 'commerce',
        list: get(of('charges/{id}/refunds')),
        named: ['id'],
        columns: ['id', 'amount_minor', 'status', 'reason', 'created_at'],
        opens: false,
      },
    ],
  },
  {
    name: 'subscriptions',
    group: 'commerce',
    list: get(of('subscriptions')),
    item: get(of('subscriptions/{id}')),
    named: ['customer_email', 'id'],
    columns: ['customer_email', 'amount_minor', 'currency', 'status', 'current_period_end'],
    actions: [
      {
        name: 'cancel',
        on: 'item',
        method: 'POST',
        path: of('subscriptions/{id}/cancel'),
        danger: true,
        when: ({ status }) => status !== 'canceled',
      },
    ],
  },
  {
    name: 'disputes',
    group: 'commerce',
    list: get(of('disputes')),
    named: ['id'],
    columns: ['charge_id', 'amount_minor', 'currency', 'status', 'created_at'],
    actions: [
      {
        name: 'close',
        on: 'item',
        method: 'POST',
        path: of('disputes/{id}/close'),
        danger: true,
        when: ({ status }) => status !== 'closed',
      },
    ],
  },
  {
    name: 'settlements',
    group: 'commerce',
    list: get(of('settlements')),
    named: ['id'],
    columns: ['charge_id', 'rail', 'amount_minor', 'currency', 'status'],
  },
  {
    name: 'balances',
    group: 'commerce',
    list: get(of('balances')),
    named: ['currency'],
    columns: ['currency', 'rail', 'available_minor', 'pending_minor', 'held_minor'],
    opens: false,
  },
  {
    name: 'payouts',
    group: 'commerce',
    list: get(of('payouts')),
    item: get(of('payouts/{id}')),
    named: ['id'],
    columns: ['id', 'rail', 'amount_minor', 'currency', 'status'],
    actions: [{ name: 'create', on: 'list', method: 'POST', path: of('payouts') }],
  },
  {
    name: 'statements',
    group: 'commerce',
    list: get(of('statements')),
    item: get(of('statements/{id}')),
    named: ['id'],
    columns: ['currency', 'period_start', 'period_end', 'closing_balance_minor'],
    actions: [{ name: 'create', on: 'list', method: 'POST', path: of('statements') }],
  },
  {
    name: 'x402-payments',
    group: 'commerce',
    list: get(of('x402-payments')),
    named: ['id'],
    columns: ['id', 'state', 'network', 'amount', 'created_at'],
    filters: ['state'],
    actions: [
      {
        name: 'resolve',
        on: 'item',
        method: 'POST',
        path: of('x402-payments/{id}/resolve'),
        danger: true,
      },
    ],
  },
  {
    name: 'wallets',
    group: 'commerce',
    list: get('/api/v1/wallets'),
    item: get(WALLET),
    id: 'agent_id',
    named: ['address'],
    columns: ['address', 'agent_id', 'status', 'created_at'],
    actions: [
      { name: 'change', on: 'item', method: 'PATCH', path: WALLET, fills: true },
      {
        name: 'freeze',
        on: 'item',
        method: 'POST',
        path: `${WALLET}/freeze`,
        danger: true,
        when: ({ status }) => status === 'active',
      },
      {
        name: 'unfreeze',
        on: 'item',
        method: 'POST',
        path: `${WALLET}/unfreeze`,
        when: ({ status }) => status === 'frozen',
      },
    ],
    children: [
      {
        name: 'signatures',
        group: 'commerce',
        list: get(`${WALLET}/signatures`),
        named: ['id'],
        columns: ['created_at', 'kind', 'network', 'recipient', 'asset', 'amount'],
        opens: false,
      },
    ],
  },
]

/** The policy of a wallet: what it refuses, and in which order. */
import test from 'ava'
import {
  exhausted,
  type Intent,
  refusalOf,
  spendsOf,
} from '../../../../actors/commerce/wallets/policy.js'

const NETWORK = 'eip155:84532'
const USDC = '0x036cbd53842c5426634e7929541ec2318f3dcf7e'
const PAYEE = '0x8ba1f109551bd432803012645ac136ddd64dba72'
const CONTRACT = '0x00000000000000000000000000000000000000aa'

const budget = (asset: string, spent = '0') => ({
  network: NETWORK,
  asset,
  paymentMax: '10',
  windowMax: '25',
  windowSecs: 60,
  spent,
})
const wallet = {
  status: 'active' as const,
  standing: true,
  recipients: [PAYEE],
  contracts: [`${NETWORK}:${CONTRACT}`],
  budgets: [budget(USDC), budget('native')],
}
const pays: Intent = {
  kind: 'payment',
  network: NETWORK,
  contract: USDC,
  recipient: PAYEE,
  asset: USDC,
  amount: 10n,
  feeMax: 0n,
  known: true,
}
const reasonOf = (change: Partial<Intent>, of: Partial<typeof wallet> | object = {}) =>
  refusalOf({ ...wallet, ...of }, { ...pays, ...change })?.reason ?? null

test('a payment within the policy is allowed', (t) => {
  t.is(reasonOf({}), null)
  t.is(reasonOf({ recipient: CONTRACT }, { recipients: null }), null)
})

test('the first refusal in the order of the checks is the answer', (t) => {
  const worst = { contract: CONTRACT, asset: CONTRACT, recipient: CONTRACT, amount: 11n }
  t.is(reasonOf(worst, { status: 'frozen' }), 'wallet_frozen')
  t.is(reasonOf(worst, { standing: false }), 'wallet_frozen')
  t.is(reasonOf(worst), 'contract_not_allowed')
  t.is(reasonOf({ recipient: CONTRACT, amount: 11n }), 'recipient_not_allowed')
  t.is(reasonOf({ amount: 11n }), 'budget_exceeded')
})

test('an asset needs a budget on its network, and has to be known', (t) => {
  t.is(reasonOf({ network: 'eip155:1' }), 'contract_not_allowed')
  t.is(reasonOf({ known: false }), 'contract_not_allowed')
  t.is(reasonOf({}, { budgets: [] }), 'contract_not_allowed')
  t.is(reasonOf({}, { recipients: [] }), 'recipient_not_allowed')
})

test('a transaction counts its fee, and a call needs its contract', (t) => {
  const fee = { feeMax: 3n }
  t.deepEqual(spendsOf({ ...pays, ...fee, kind: 'token_transfer' }), [
    { asset: USDC, amount: '10' },
    { asset: 'native', amount: '3' },
  ])
  const native = { ...fee, kind: 'native_transfer', contract: null, asset: 'native' } as const
  t.deepEqual(spendsOf({ ...pays, ...native }), [{ asset: 'native', amount: '13' }])
  t.is(reasonOf(native), 'budget_exceeded')
  t.is(reasonOf({ ...native, amount: 7n }), null)
  const call = {
    ...fee,
    kind: 'call',
    contract: CONTRACT,
    recipient: CONTRACT,
    amount: 0n,
  } as const
  t.is(reasonOf({ ...call, asset: 'native' }), null)
  t.is(reasonOf({ ...call, asset: 'native', contract: PAYEE }), 'contract_not_allowed')
  t.is(reasonOf({ ...call, asset: 'native' }, { budgets: [budget(USDC)] }), 'budget_exceeded')
})

test('a window that has too little left names what it lacks', (t) => {
  const of = (spent: string) => exhausted({ budgets: [budget(USDC, spent)] }, pays)
  t.is(of('15'), undefined)
  t.is(of('16')?.lacks, 1n)
  t.is(of('30')?.lacks, 15n)
})

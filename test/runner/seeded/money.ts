/** Faults of money: amounts, refunds, budgets and payments that count twice. */
import { fault, type SeededFault } from './fault.js'

const POLICY = 'actors/commerce/wallets/policy.ts'
const REFUNDS = 'storage/commerce/refunds.ts'
const MONEY_FLOWS = 'flows/commerce/money.test.ts'
const X402_RULES = 'actors/commerce/payments/x402/rules.test.ts'

export const MONEY: readonly SeededFault[] = [
  fault(
    'a wallet pays no more in one payment than its budget allows',
    POLICY,
    [
      'budget !== null && BigInt(spend.amount) <= BigInt(budget.paymentMax)',
      'budget !== null && BigInt(spend.amount) <= BigInt(budget.windowMax)',
    ],
    'actors/commerce/wallets/policy.test.ts',
  ),
  fault(
    'the fee of a native transfer counts against its budget',
    POLICY,
    ['String(amount + feeMax)', 'String(amount)'],
    'actors/commerce/wallets/policy.test.ts',
  ),
  fault(
    'what was spent before counts against the window of a budget',
    POLICY,
    ['BigInt(budget.spent) + BigInt(spend.amount)', 'BigInt(spend.amount)'],
    'actors/commerce/wallets/policy.test.ts',
  ),
  fault(
    'a price that an asset cannot express is not rounded',
    'actors/domain/commerce/assets.ts',
    ['minor % divisor === 0n ? String(minor / divisor) : null', 'String(minor / divisor)'],
    X402_RULES,
  ),
  fault(
    'currencies have their own number of decimals',
    'actors/domain/commerce/assets.ts',
    ['(currencyExponent(currency) ?? 2)', '2'],
    X402_RULES,
  ),
  fault(
    'a settlement of another amount is no payment',
    'actors/commerce/payments/x402/facilitator.ts',
    ['amount !== null && amount !== expected.amount', 'amount === null'],
    X402_RULES,
  ),
  fault(
    'a charge or refund is booked once',
    'migrations/0012_commerce.sql',
    ['create unique index ledger_entries_once', 'create index ledger_entries_once'],
    'storage/commerce/ledger.test.ts',
  ),
  fault(
    'the lines of a ledger entry add up to zero',
    'migrations/0104_ledger_balance.sql',
    ['lines < 2 or total <> 0 or strange > 0', 'lines < 2 or strange > 0'],
    'storage/commerce/ledger.test.ts',
  ),
  fault(
    'a card payment of another amount is not believed',
    'actors/commerce/payments/card/objects.ts',
    ['amount === providerAmount(order.amountMinor, order.currency)', `typeof amount === 'number'`],
    'actors/commerce/payments/card/objects.test.ts',
  ),
  fault(
    'a card payment in another currency is not believed',
    'actors/commerce/payments/card/objects.ts',
    ['currency.toUpperCase() === order.currency', `currency.length === order.currency.length`],
    'actors/commerce/payments/card/objects.test.ts',
  ),
  fault(
    'an x402 authorization pays the price',
    'actors/commerce/payments/x402/authorization.ts',
    ['authorization.value !== amount', 'BigInt(authorization.value) > BigInt(amount)'],
    'flows/commerce/x402.test.ts',
  ),
  fault(
    'an x402 authorization pays the payee of the offer',
    'actors/commerce/payments/x402/authorization.ts',
    ['!sameAddress(authorization.to, payTo)', 'authorization.to.length !== payTo.length'],
    'flows/commerce/x402.test.ts',
  ),
  fault(
    'a refund needs money of the merchant',
    REFUNDS,
    ['and ${FUNDS} >= coalesce($3, ${REST}))', 'and ${FUNDS} is not null)'],
    MONEY_FLOWS,
  ),
  fault(
    'a refund that was made elsewhere is within the charge',
    REFUNDS,
    ['${REST} >= coalesce($3, ${REST}))', 'coalesce($3, ${REST}) > 0)'],
    'flows/commerce/x402-checkout.test.ts',
  ),
  fault(
    'a payout is within the available balance',
    'actors/commerce/payments/payouts/manage.ts',
    ['amountMinor <= 0 || amountMinor > available', 'amountMinor <= 0 || available <= 0'],
    MONEY_FLOWS,
  ),
]

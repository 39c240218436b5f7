/** Faults of money: amounts, refunds, budgets and payments that count twice. */
import { fault, type SeededFault } from './fault.js'

const POLICY = 'actors/commerce/wallets/policy.ts'
const X402_RULES = 'actors/commerce/x402/rules.test.ts'

export const MONEY: readonly SeededFault[] = [
  fault(
    'a wallet pays no more at once than its budget allows',
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
    'actors/commerce/x402/assets.ts',
    ['minor % divisor === 0n ? String(minor / divisor) : null', 'String(minor / divisor)'],
    X402_RULES,
  ),
  fault(
    'currencies have their own number of decimals',
    'actors/commerce/x402/assets.ts',
    ['(currencyExponent(currency) ?? 2)', '2'],
    X402_RULES,
  ),
]

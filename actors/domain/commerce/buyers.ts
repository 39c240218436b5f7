/** Validation of buyer details in checkout requests. */
import { parseEmail } from '../email.js'

/** ISO 3166-1 alpha-2, officially assigned. */
const COUNTRIES: ReadonlySet<string> = new Set(
  (
    'AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR ' +
    'BS BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ ' +
    'EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW ' +
    'GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY ' +
    'KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV ' +
    'MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY ' +
    'QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG ' +
    'TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW'
  ).split(' '),
)
/** The subdivision part of an ISO 3166-2 code. */
const REGION = /^[A-Z0-9]{1,3}$/

type BuyerFacts = {
  readonly customerEmail: string | null
  readonly buyerCountry: string | null
  readonly buyerRegion: string | null
}

type BuyerFault = {
  readonly member: 'customer_email' | 'buyer_country' | 'buyer_region'
  readonly detail: string
}

/** The first invalid member, or undefined. */
export function buyerFault(facts: BuyerFacts): BuyerFault | undefined {
  const { customerEmail, buyerCountry, buyerRegion } = facts
  if (customerEmail !== null && parseEmail(customerEmail) === undefined) {
    return { member: 'customer_email', detail: 'Must be an email address.' }
  }
  if (buyerCountry !== null && !COUNTRIES.has(buyerCountry)) {
    return { member: 'buyer_country', detail: 'Must be a country code of ISO 3166-1 alpha-2.' }
  }
  if (buyerRegion !== null && !REGION.test(buyerRegion)) {
    return {
      member: 'buyer_region',
      detail: 'Must be the subdivision part of an ISO 3166-2 code.',
    }
  }
  if (buyerRegion !== null && buyerCountry === null) {
    return { member: 'buyer_region', detail: 'Requires buyer_country.' }
  }
  return undefined
}

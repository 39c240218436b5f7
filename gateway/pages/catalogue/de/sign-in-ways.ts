/** German texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'ways.other': 'Anders anmelden',
  'ways.account': 'Zurück zu Ihrem Konto',
  'ways.phone': 'Weiter mit Telefon',

  'phone.title': 'Mit dem Telefon anmelden',
  'phone.lead': 'Wir senden Ihnen einen Code per SMS.',
  'phone.number': 'Telefonnummer',
  'phone.number.hint': 'Mit Ländervorwahl, zum Beispiel +49 30 12345678.',
  'phone.number.invalid':
    'Geben Sie eine Telefonnummer mit Ländervorwahl ein, zum Beispiel +49 30 12345678.',
  'phone.number.country': 'In dieses Land können wir keine SMS senden.',
  'phone.send': 'Code per SMS senden',
  'phone.code.title': 'Code eingeben',
  'phone.code.lead':
    'Wenn ein Konto diese Nummer verwendet, ist eine SMS unterwegs. Das kann eine Minute dauern.',
  'phone.code.sent': 'Wir haben einen Code an {number} gesendet. Das kann eine Minute dauern.',
  'phone.code': '6-stelliger Code',
  'phone.code.hint': 'Aus der SMS.',
  'phone.code.wrong':
    'Dieser Code ist falsch oder nicht mehr gültig. Prüfen Sie ihn, oder fordern Sie einen neuen an.',
  'phone.prove': 'Nummer bestätigen',
  'phone.again': 'Andere Nummer verwenden oder neuen Code anfordern',
  'phone.own.title': 'Telefonnummer hinzufügen',
  'phone.own.lead':
    'Sie können sich mit einem Code anmelden, den wir an diese Nummer senden. Verwendet ein anderes Konto die Nummer, geht sie an Ihres über.',
  'phone.section': 'Telefonnummer für die Anmeldung',
  'phone.none': 'Noch keine Telefonnummer.',
  'phone.add': 'Telefonnummer hinzufügen',
  'phone.change': 'Telefonnummer ändern',
}

/** German texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'gerade eben',
  'control.reveal': 'Passwort anzeigen',
  'control.copy': 'Kopieren',
  'control.copied': 'Kopiert',
  'control.download': 'Herunterladen',
  'control.print': 'Drucken',
  'codes.file': 'Wiederherstellungscodes für {tenant}. Jeder Code gilt einmal.',
  'mfa.recovery.use': 'Wiederherstellungscode verwenden',
  'mfa.recovery.code': 'Wiederherstellungscode',
  'account.nav': 'Abschnitte dieser Seite',
  'account.security': 'Sicherheit',
  'account.email': 'E-Mail-Adresse',
  'account.confirmed': 'Bestätigt',
  'account.unconfirmed': 'Nicht bestätigt',
  'account.codes': 'Wiederherstellungscodes',
  'account.codes.lead': 'Mit ihnen melden Sie sich an, wenn Sie Ihre anderen Faktoren verlieren.',
  'account.password.set': 'Sie haben ein Passwort.',
  'delegation.verified': 'Geprüft: {domain}',
  'delegation.unverified': 'Nicht geprüft',
  'delegation.verified.hint': 'Er gehört zu der Organisation, der {domain} gehört.',
  'delegation.unverified.hint': 'Er gehört zu keiner Organisation mit geprüfter Domain.',
  'delegation.time': 'Wie lange',
  'delegation.time.value': '{time}, oder bis Sie den Zugriff entziehen',
  'delegation.origin': 'Angefragt von',
}

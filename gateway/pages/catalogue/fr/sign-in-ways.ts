/** French texts of sign-in by phone, wallet and as a guest, and of confirmations. */
import type { signInWays as english } from '../en/sign-in-ways.js'

export const signInWays: Readonly<Record<keyof typeof english, string>> = {
  'footer.links': 'Liens de {tenant}',

  'ways.other': 'Se connecter d’une autre manière',
  'ways.account': 'Retour à votre compte',
  'ways.phone': 'Continuer avec le téléphone',

  'ways.ethereum': 'Continuer avec Ethereum',

  'ways.guest': 'Continuer en tant qu’invité',

  'confirm.lead':
    'Vous ne vous êtes jamais connecté d’ici, ou quelqu’un a essayé votre mot de passe. Nous avons envoyé un code à votre adresse e-mail.',
  'confirm.hint': 'Reçu par e-mail. Cela peut prendre une minute.',
  'confirm.again': 'Recevoir un nouveau code par e-mail',

  'guest.name': 'Invité',
  'guest.title': 'Conserver votre compte',
  'guest.lead':
    'Ajoutez votre adresse e-mail pour conserver ce compte. Nous vous envoyons un code.',
  'guest.send': 'Recevoir un code par e-mail',
  'guest.sent': 'Nous avons envoyé un code à {email}. Cela peut prendre une minute.',
  'guest.prove': 'Conserver mon compte',
  'guest.again': 'Utiliser une autre adresse ou demander un nouveau code',
  'guest.taken': 'Vous avez déjà un compte avec cette adresse e-mail. Connectez-vous à ce compte.',
  'guest.section': 'Vous êtes invité',
  'guest.section.lead':
    'Vous ne pouvez pas vous reconnecter sur un autre appareil, et ce compte prend fin si vous ne l’utilisez pas pendant un certain temps.',
  'guest.add': 'Ajouter votre adresse e-mail',

  'wallet.title': 'Se connecter avec Ethereum',
  'wallet.lead':
    'Votre portefeuille vous demande de signer un message. C’est gratuit et n’envoie aucune transaction.',
  'wallet.submit': 'Connecter le portefeuille',
  'wallet.new.title': 'Associer un compte Ethereum',
  'wallet.new.lead':
    'Vous pourrez ensuite vous connecter avec ce compte. Votre portefeuille vous demande de signer un message. C’est gratuit et n’envoie aucune transaction.',
  'wallet.new.submit': 'Connecter le portefeuille',
  'wallet.missing':
    'Ce navigateur n’a pas de portefeuille Ethereum. Installez-en un ou connectez-vous d’une autre manière.',
  'wallet.cancelled': 'Vous avez refusé dans votre portefeuille. Réessayez quand vous êtes prêt.',
  'wallet.chain':
    'Votre portefeuille est sur un réseau qui n’est pas accepté ici. Changez de réseau et réessayez.',
  'wallet.failed': 'Votre portefeuille n’a pas signé le message. Réessayez.',
  'wallet.script':
    'La connexion avec Ethereum nécessite JavaScript, car votre portefeuille signe dans ce navigateur. Activez-le ou connectez-vous d’une autre manière.',
  'wallet.wrong': 'La signature n’est pas valide, ou le message a expiré. Réessayez.',
  'wallet.unlinked':
    'Aucun compte n’utilise ce compte Ethereum. Connectez-vous d’une autre manière, puis associez-le sur la page de votre compte.',
  'wallet.taken':
    'Ce compte Ethereum est déjà associé à un compte, ou vous avez atteint le nombre maximal de comptes associés.',
  'wallet.section': 'Comptes Ethereum',
  'wallet.none': 'Aucun compte Ethereum pour le moment.',
  'wallet.add': 'Associer un compte Ethereum',

  'phone.title': 'Se connecter avec votre téléphone',
  'phone.lead': 'Nous vous envoyons un code par SMS.',
  'phone.number': 'Numéro de téléphone',
  'phone.number.hint': 'Avec l’indicatif du pays, par exemple +33 1 23 45 67 89.',
  'phone.number.invalid':
    'Saisissez un numéro de téléphone avec l’indicatif du pays, par exemple +33 1 23 45 67 89.',
  'phone.number.country': 'Nous ne pouvons pas envoyer de SMS vers ce pays.',
  'phone.send': 'Recevoir un code par SMS',
  'phone.code.title': 'Saisir le code',
  'phone.code.lead':
    'Si un compte utilise ce numéro, un SMS est en route. Cela peut prendre une minute.',
  'phone.code.sent': 'Nous avons envoyé un code au {number}. Cela peut prendre une minute.',
  'phone.code': 'Code à 6 chiffres',
  'phone.code.hint': 'Reçu par SMS.',
  'phone.code.wrong':
    'Ce code est incorrect ou n’est plus valable. Vérifiez-le ou demandez-en un nouveau.',
  'phone.prove': 'Confirmer le numéro',
  'phone.again': 'Utiliser un autre numéro ou demander un nouveau code',
  'phone.own.title': 'Ajouter votre numéro de téléphone',
  'phone.own.lead':
    'Vous pourrez vous connecter avec un code envoyé par SMS à ce numéro. Si un autre compte l’utilise, il sera transféré au vôtre.',
  'phone.section': 'Numéro de téléphone pour la connexion',
  'phone.none': 'Aucun numéro de téléphone pour le moment.',
  'phone.add': 'Ajouter un numéro de téléphone',
  'phone.change': 'Modifier le numéro de téléphone',
}

from sklearn.utils.estimator_checks import parametrize_with_checks

from isopursuit.estimators import IsometryFeatureSelector, IsometrySampleSelector


@parametrize_with_checks([IsometryFeatureSelector(), IsometrySampleSelector()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)

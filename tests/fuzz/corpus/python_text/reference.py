import x
@dec
def run(a, b: 'c') -> d:
    '''doc'''
    return f"{a!r}"
